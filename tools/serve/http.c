/* Opens and closes the HTTP/1.1 server, which uses libmicrohttpd (http.h). */
#include "tools/serve/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/serve/http_parts.h"
#include "tools/serve/tls.h"

#define THREADS     4 /* number of threads that read requests and write answers */
/* bytes of memory for each connection. They hold its headers and the data that is being read or written */
#define MEMORY      (128 * 1024)
/* after the server was told to end, clients have this many milliseconds to read complete answers */
#define LINGER      1000
#define OTHER_FILES 256 /* number of open files that are not connections: models, slots, logs */

/* Stores libmicrohttpd's last message while the server starts. If the start fails, this message says why. Later
 * messages are about clients' errors, and are dropped. */
static void keep_message(void *context, const char *format, va_list values) {
    fr_http *http = context;
    if (http->started) return;
    vsnprintf(http->message, sizeof(http->message), format, values);
    http->message[strcspn(http->message, "\n")] = '\0';
}

/* Returns MHD_YES if a new connection may be accepted. MHD_quiesce_daemon would also stop new connections, but it
 * removes the listening socket. Two of libmicrohttpd's threads may then remove the socket from the same epoll set. The
 * thread that comes second would abort the process. */
static enum MHD_Result takes(void *http, const struct sockaddr *from, socklen_t length) {
    (void)from;
    (void)length;
    return atomic_load(&((fr_http *)http)->refusing) ? MHD_NO : MHD_YES;
}

static intptr_t of_function(void (*function)(void)) {
    return (intptr_t)function;
}

static struct MHD_Daemon *start(fr_http *http, bool ip6) {
    const fr_http_setting *s = &http->setting;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    if (ip6) flags |= MHD_USE_IPv6;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)s->key_pem},
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)s->certificate_pem},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)of_function((void (*)(void))fr_tls_retrieve)},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"},
        {MHD_OPTION_END, 0, NULL}};
    if (s->key_pem)
        flags |= MHD_USE_TLS;
    else
        tls[0].option = MHD_OPTION_END;
    unsigned most = s->connections + FR_HTTP_EXCESS;
    struct MHD_OptionItem pool[] = {{MHD_OPTION_THREAD_POOL_SIZE, THREADS, NULL}, {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem callbacks[] = {
        {MHD_OPTION_URI_LOG_CALLBACK, of_function((void (*)(void))fr_http_see_target), http},
        {MHD_OPTION_UNESCAPE_CALLBACK, of_function((void (*)(void))fr_http_keep_escapes), http},
        {MHD_OPTION_NOTIFY_COMPLETED, of_function((void (*)(void))fr_http_completed), http},
        {MHD_OPTION_NOTIFY_CONNECTION, of_function((void (*)(void))fr_http_connection), http},
        {MHD_OPTION_END, 0, NULL}};
    return MHD_start_daemon(flags, 0, takes, http, fr_http_request, http, MHD_OPTION_EXTERNAL_LOGGER, keep_message,
                            http, MHD_OPTION_LISTEN_SOCKET, http->socket, MHD_OPTION_CONNECTION_LIMIT, most,
                            MHD_OPTION_CONNECTION_TIMEOUT, s->timeout, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)MEMORY, MHD_OPTION_ARRAY, callbacks, MHD_OPTION_ARRAY, pool, MHD_OPTION_ARRAY, tls,
                            MHD_OPTION_END);
}

/* Raises the limit of open files to the number that the connections need. Many systems allow only 1,024 open files by
 * default. */
static void allow_open_files(const fr_http_setting *setting) {
    struct rlimit files;
    rlim_t wanted = (rlim_t)setting->connections + FR_HTTP_EXCESS + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted) return;
    files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &files); /* if this fails, new connections wait until others are closed */
}

static int start_threads(fr_http *http) {
    allow_open_files(&http->setting);
    http->daemon = start(http, strchr(http->url, '[') != NULL);
    if (!http->daemon) {
        return fr_bad_input("can't serve %s: %s", http->url, http->message);
    }
    http->started = true;
    http->socket = -1;
    size_t *i = &http->helper_count;
    while (*i < FR_HTTP_HELPERS &&
           pthread_create(&http->helpers[*i], NULL, *i ? fr_http_work : fr_http_watch, http) == 0)
        ++*i;
    if (*i == FR_HTTP_HELPERS) return 0;
    fr_http_finish(http, 0);
    MHD_stop_daemon(http->daemon);
    return fr_bad_input("can't serve %s: no more threads", http->url);
}

static void free_http(fr_http *http) {
    if (http->socket >= 0) close(http->socket);
    pthread_cond_destroy(&http->changed);
    pthread_cond_destroy(&http->handed);
    pthread_mutex_destroy(&http->lock);
    pthread_rwlock_destroy(&http->keys);
    if (http->setting.key_pem) fr_tls_free();
    free(http);
}

static fr_http *new_http(const fr_http_setting *setting) {
    fr_http *http = fr_resize(NULL, 1, sizeof(*http));
    *http = (fr_http){.setting = *setting, .socket = -1, .keyed = setting->keys != NULL};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&http->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&http->handed, NULL);
    pthread_mutex_init(&http->lock, NULL);
    pthread_rwlock_init(&http->keys, NULL);
    return http;
}

int fr_http_open(const fr_http_setting *setting, fr_http **opened) {
    *opened = NULL;
    if (!setting->key_pem != !setting->certificate_pem) {
        return fr_bad_input("TLS needs both --ssl-key-file and --ssl-cert-file");
    }
    if (setting->key_pem && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        return fr_bad_input("this system's libmicrohttpd has no TLS");
    }
    char address[64], error[128];
    if (setting->key_pem && !fr_tls_set(setting->key_pem, setting->certificate_pem, error, sizeof(error))) {
        return fr_bad_input("--ssl-key-file and --ssl-cert-file can't be used: %s", error);
    }
    fr_http *http = new_http(setting);
    int status = fr_http_listen(setting->host, setting->port, &http->socket, address, sizeof(address), &http->loopback);
    snprintf(http->url, sizeof(http->url), "http%s://%s", setting->key_pem ? "s" : "", status ? "" : address);
    if (status == 0) status = start_threads(http);
    if (status == 0)
        *opened = http;
    else
        free_http(http);
    return status;
}

void fr_http_set_keys(fr_http *http, const char *const *keys) {
    pthread_rwlock_wrlock(&http->keys);
    http->setting.keys = keys;
    pthread_rwlock_unlock(&http->keys);
}

const char *fr_http_url(const fr_http *http) {
    return http->url;
}

void fr_http_refuse_new(fr_http *http) {
    atomic_store(&http->refusing, true);
}

void fr_http_close(fr_http *http) {
    if (!http) return;
    fr_http_refuse_new(http);
    fr_http_finish(http, LINGER);
    MHD_stop_daemon(http->daemon);
    free_http(http);
}
