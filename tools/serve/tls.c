/* Keeps the TLS certificate of a server (tls.h). */
#include "tools/serve/tls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

enum { CHAIN_MAX = 16 };

typedef struct identity {
    /* The identity that was in use before this one. A handshake may still use it, so it is freed only when the server
     * ends */
    struct identity *before;
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned length;
    gnutls_privkey_t key;
} identity;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static identity *current; /* protected by the lock */

static void free_identity(identity *id) {
    for (unsigned i = 0; i < id->length; i++) gnutls_pcert_deinit(&id->chain[i]);
    if (id->key) gnutls_privkey_deinit(id->key);
    free(id);
}

/* Checks that the certificate and the key belong together. GnuTLS checks this only when both are put into
 * credentials. */
static int check_pair(const gnutls_datum_t *certificate, const gnutls_datum_t *key) {
    gnutls_certificate_credentials_t credentials;
    int code = gnutls_certificate_allocate_credentials(&credentials);
    if (code < 0) return code;
    code = gnutls_certificate_set_x509_key_mem(credentials, certificate, key, GNUTLS_X509_FMT_PEM);
    gnutls_certificate_free_credentials(credentials);
    return code;
}

bool fr_tls_set(const char *key_pem, const char *certificate_pem, char *error, size_t size) {
    const gnutls_datum_t key = {.data = (unsigned char *)(uintptr_t)key_pem, .size = (unsigned)strlen(key_pem)};
    const gnutls_datum_t certificate = {.data = (unsigned char *)(uintptr_t)certificate_pem,
                                        .size = (unsigned)strlen(certificate_pem)};
    identity *id = fr_resize(NULL, 1, sizeof *id);
    *id = (identity){.length = CHAIN_MAX};
    int code = check_pair(&certificate, &key);
    if (code >= 0)
        code = gnutls_pcert_list_import_x509_raw(id->chain, &id->length, &certificate, GNUTLS_X509_FMT_PEM, 0);
    if (code < 0) id->length = 0;
    if (code >= 0) code = gnutls_privkey_init(&id->key);
    if (code >= 0) code = gnutls_privkey_import_x509_raw(id->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (code < 0) {
        snprintf(error, size, "%s", gnutls_strerror(code));
        free_identity(id);
        return false;
    }
    pthread_mutex_lock(&lock);
    id->before = current;
    current = id;
    pthread_mutex_unlock(&lock);
    return true;
}

int fr_tls_retrieve(gnutls_session_t session, const gnutls_datum_t *issuers, int issuer_count,
                    const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **chain,
                    unsigned *length, gnutls_privkey_t *key) {
    (void)session;
    (void)issuers;
    (void)issuer_count;
    (void)algorithms;
    (void)algorithm_count;
    pthread_mutex_lock(&lock);
    identity *id = current;
    pthread_mutex_unlock(&lock);
    if (!id) return -1;
    *chain = id->chain;
    *length = id->length;
    *key = id->key;
    return 0;
}

void fr_tls_free(void) {
    while (current) {
        identity *id = current;
        current = id->before;
        free_identity(id);
    }
}
