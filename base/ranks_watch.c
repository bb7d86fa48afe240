/* Lets the processes of a job watch each other: see ranks_watch.h.
 *
 * All records have one size. They are so small and few that a socket always takes them, so no sender waits for a
 * reader. Only the watching thread reads. The job's failure is written once, before `failed` is set. */
#include "base/ranks_watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ranks.h"
#include "base/thread_stack.h"

enum {
    ALIVE = 1,  /* ALIVE to ALL_LEAVE are kinds of records; ALIVE is a sign of life */
    LEAVING,    /* the sender leaves; the record has the sender's exit status and last line */
    STRUCK,     /* all ranks must end by the record's signal, which one of them has received */
    FAILED,     /* from rank 0: the job's failure */
    MISSES,     /* the sender leaves because another rank has gone or is silent; the line names that rank */
    SAID,       /* the sender leaves because rank 0 has gone or is silent; rank 1 prints the failure */
    ALL_LEAVE,  /* from rank 0: all ranks are leaving */
    LINE = 400, /* bytes of a record's line */
    NAME = FR_WATCH_HOST + 24, /* bytes of a rank's name in error lines */
    CONNECT_MS = 3000,         /* time to connect to one address */
    MEET_MS = 20000,           /* time for all ranks to connect */
    HELLO_MS = 500,            /* time for the first message of one rank */
    LINGER_MS = 1000,          /* time that ranks above 1 give rank 1 to print why rank 0 is missing */
    LOOK_MS = 50,     /* time between two checks of things that no connection reports: silence, failures, the parent
                       * process */
    STRUCK_LOOKS = 15 /* number of waits of 10 ms after a signal, because the failure that caused the signal may become
                       * known later than the signal */
};

#define BEAT_MAX 2.0 /* longest time in seconds between two signs of life; at most a fifth of the timeout */

typedef struct record {
    int32_t kind, rank, code; /* rank: the sender; code: the sender's exit status or signal */
    char line[LINE];
} record;

typedef struct peer {
    atomic_int fd;        /* -1 if the rank is not connected yet, or no longer */
    double heard;         /* time at which the rank was last heard of */
    bool leaving, struck; /* leaving: the rank has said that it leaves; struck: the rank ends by a signal */
    record in;            /* the record that is being received */
    size_t got;           /* bytes of `in` that have arrived */
    char name[NAME];
} peer;

struct fr_watch {
    int index, count, listener;   /* listener: the socket on which rank 0 listens */
    _Atomic double timeout, late; /* timeout: seconds for which a rank may be silent; late: seconds after a failure
                                   * until a process that hangs is ended */
    _Atomic(fr_watch_end_fn *) end;
    pthread_mutex_t mutex; /* guards the failure while it is written, and the members that fr_watch_leave waits for */
    pthread_cond_t changed;
    fr_failure failure;
    atomic_bool failed, leaving; /* failed: the job has failed; leaving: this process leaves */
    atomic_int missed;           /* the rank that has gone or is silent, if that is the job's failure; -1 otherwise */
    /* signal: the signal that ends all ranks; own_signal: the signal that this rank has passed on; 0 means no signal */
    atomic_int signal, own_signal;
    bool settled, all_leave; /* settled: there is no rank left for which this rank must wait */
    bool told;               /* the failure was sent to the other ranks */
    double failed_at, beat;  /* failed_at: time of the job's failure; beat: time of the last sign of life that this rank
                              * sent */
    pid_t starter;           /* the parent of this process when it was last looked at */
    peer peers[];            /* [count]; rank 0 is connected to each rank, the others only to rank 0 */
};

/* --------------------------------------------------------------------------------------------------------- failures */

const char *fr_watch_name(const fr_watch *w, int rank) {
    return w->peers[rank].name;
}

bool fr_watch_failed(const fr_watch *w) {
    return atomic_load_explicit(&w->failed, memory_order_acquire);
}

fr_status fr_watch_check(const fr_watch *w) {
    return fr_watch_failed(w) ? fr_failure_raise(&w->failure) : FR_OK;
}

/* Records the job's failure, unless one is recorded already. missed: if the failure is that a rank has gone or is
 * silent, that rank; -1 otherwise. */
static void fail_by(fr_watch *w, int missed, fr_status status) {
    pthread_mutex_lock(&w->mutex);
    if (!fr_watch_failed(w)) {
        atomic_store(&w->missed, missed);
        w->failure = fr_failure_keep(status);
        w->failed_at = fr_clock();
        atomic_store_explicit(&w->failed, true, memory_order_release);
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->mutex);
}

void fr_watch_fail(fr_watch *w, fr_status status) {
    fail_by(w, -1, status);
}

void fr_watch_miss(fr_watch *w, int rank, fr_status status) {
    fail_by(w, rank, status);
}

bool fr_watch_says(const fr_watch *w) {
    return w->index == 0 || (w->index == 1 && atomic_load(&w->missed) == 0);
}

void fr_watch_patience(fr_watch *w, double timeout) {
    atomic_store(&w->timeout, timeout);
}

void fr_watch_end_late(fr_watch *w, double seconds, fr_watch_end_fn *end) {
    atomic_store(&w->late, seconds);
    atomic_store(&w->end, end);
}

/* ---------------------------------------------------------------------------------------------------------- records */

static void send_record(const fr_watch *w, int to, int kind, int code, const char *line) {
    record out = {.kind = kind, .rank = w->index, .code = code};
    int fd = w->peers[to].fd;
    if (fd < 0) return;
    for (size_t i = 0; line[i] && i < LINE - 1; i++) out.line[i] = line[i];
    send(fd, &out, sizeof out, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_all(const fr_watch *w, int kind, int code, const char *line) {
    for (int r = 0; r < w->count; r++) send_record(w, r, kind, code, line);
}

static void settle(fr_watch *w, bool all_leave) {
    pthread_mutex_lock(&w->mutex);
    w->settled = true;
    w->all_leave = all_leave;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

/* Lets rank 0 leave once all other ranks are leaving or have gone. */
static void look_who_is_left(fr_watch *w) {
    bool all = true;
    for (int r = 1; r < w->count; r++) {
        if (!w->peers[r].leaving && w->peers[r].fd >= 0) return;
        all = all && w->peers[r].leaving;
    }
    if (all) send_all(w, ALL_LEAVE, 0, "");
    settle(w, all);
}

/* Ends all ranks by the signal that one of them has received. */
static void pass_signal(fr_watch *w, int rank, int signal_number) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    int known = SIGTERM, none = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends[i] == signal_number) known = signal_number;
    w->peers[rank].struck = true;
    if (!atomic_compare_exchange_strong(&w->signal, &none, known)) return;
    for (int r = 0; r < w->count; r++) w->peers[r].struck = true;
    if (w->index == 0) send_all(w, STRUCK, known, "");
    if (!atomic_load(&w->own_signal)) kill(getpid(), known);
}

static void take_record(fr_watch *w, int rank, record *in) {
    fr_watch_end_fn *end = atomic_load(&w->end);
    in->line[LINE - 1] = '\0';
    switch (in->kind) {
    case LEAVING:
        w->peers[rank].leaving = true;
        if (in->code) fr_watch_fail(w, fr_fail(FR_MACHINE, "%s: %s", w->peers[rank].name, in->line));
        break;
    case MISSES:
        w->peers[rank].leaving = true;
        fr_watch_fail(w, fr_fail(FR_MACHINE, "%s", in->line));
        break;
    case STRUCK: pass_signal(w, rank, in->code); break;
    case FAILED:
        if (rank == 0) fr_watch_fail(w, fr_fail(FR_MACHINE, "%s", in->line));
        break;
    case SAID:
        w->peers[rank].leaving = true;
        if (end && rank) end(NULL);
        break;
    case ALL_LEAVE:
        w->peers[rank].leaving = true;
        if (rank == 0) settle(w, true);
        break;
    default: break;
    }
}

/* Handles the end of a connection. */
static void lose(fr_watch *w, int rank) {
    peer *p = &w->peers[rank];
    shutdown(p->fd, SHUT_RDWR); /* not closed, because another thread may be sending to it, and the descriptor's number
                                 * must not be reused */
    p->fd = -1;
    if (!p->leaving && !p->struck) fr_watch_miss(w, rank, fr_fail(FR_MACHINE, "%s has gone", p->name));
    if (w->index) settle(w, w->all_leave);
}

static void receive(fr_watch *w, int rank) {
    peer *p = &w->peers[rank];
    for (;;) {
        ssize_t got = recv(p->fd, (char *)&p->in + p->got, sizeof p->in - p->got, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) {
            lose(w, rank);
            return;
        }
        p->heard = fr_clock();
        p->got += (size_t)got;
        if (p->got < sizeof p->in) continue;
        p->got = 0;
        take_record(w, rank, &p->in);
    }
}

/* ------------------------------------------------------------------------------------------------------- the thread */

static double beat_of(const fr_watch *w) {
    double beat = atomic_load(&w->timeout) / 5;
    return beat < BEAT_MAX ? beat : BEAT_MAX;
}

static void look_for_silence(fr_watch *w, double now) {
    double timeout = atomic_load(&w->timeout);
    for (int r = 0; r < w->count; r++) {
        peer *p = &w->peers[r];
        if (p->fd < 0 || p->leaving || p->struck || now - p->heard < timeout) continue;
        fr_watch_miss(w, r, fr_fail(FR_MACHINE, "%s is silent for %g s", p->name, timeout));
    }
}

/* Tells the others that this rank leaves. If this is rank 0, it also sends its failure, because all ranks then end. The
 * program that starts jobs ends all ranks once one has ended. So if rank 0 is missing, ranks above 1 wait, which gives
 * rank 1 time to print the reason. */
static void say_goodbye(const fr_watch *w, int code, const char *line) {
    int missed = atomic_load(&w->missed);
    if (w->index == 0 && code) {
        send_all(w, FAILED, code, w->failure.line);
        send_all(w, LEAVING, 0, "");
    }
    if (w->index) send_record(w, 0, missed < 0 ? LEAVING : missed ? MISSES : SAID, code, line);
    if (w->index > 1 && missed == 0) poll(NULL, 0, LINGER_MS);
}

/* Sends signs of life, reports a failure once, lets rank 0 leave, and ends a process that hangs after a failure. */
static void tell(fr_watch *w, double now) {
    fr_watch_end_fn *end = atomic_load(&w->end);
    if (now - w->beat >= beat_of(w)) {
        send_all(w, ALIVE, 0, "");
        w->beat = now;
    }
    if (w->index == 0 && !w->settled && atomic_load(&w->leaving)) look_who_is_left(w);
    if (!fr_watch_failed(w)) return;
    if (w->index == 0 && !w->told) send_all(w, FAILED, 1, w->failure.line);
    w->told = true;
    if (!end || atomic_load(&w->leaving) || now - w->failed_at < atomic_load(&w->late)) return;
    say_goodbye(w, 1, w->failure.line);
    end(fr_watch_says(w) ? w->failure.line : NULL);
}

static void listen_once(fr_watch *w) {
    struct pollfd polled[FR_RANKS_MAX];
    int ranks[FR_RANKS_MAX], count = 0;
    for (int r = 0; r < w->count; r++) {
        if (w->peers[r].fd < 0) continue;
        ranks[count] = r;
        polled[count++] = (struct pollfd){.fd = w->peers[r].fd, .events = POLLIN};
    }
    poll(polled, (nfds_t)count, LOOK_MS);
    for (int i = 0; i < count; i++)
        if (polled[i].revents) receive(w, ranks[i]);
}

static void *watch(void *context) {
    fr_watch *w = context;
    for (double last = fr_clock();;) {
        listen_once(w);
        double now = fr_clock();
        /* If this process itself was stopped for a while, it could not hear any rank. So silence counts only from now
         * on. */
        for (int r = 0; r < w->count && now - last > 1; r++) w->peers[r].heard = now;
        last = now;
        look_for_silence(w, now);
        tell(w, now);
        if (getppid() == w->starter) continue;
        w->starter = getppid(); /* the program that started the job has ended, and another process is the parent now */
        kill(getpid(), SIGTERM);
    }
    return NULL;
}

/* Starts the watching thread. It blocks all signals, so that the other threads handle them. */
static fr_status start_thread(fr_watch *w) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    double now = w->beat = fr_clock();
    for (int r = 0; r < w->count; r++) w->peers[r].heard = now;
    if (pthread_attr_init(&attributes)) return fr_fail_memory("thread that watches ranks", FR_THREAD_STACK_BYTES);
    pthread_attr_setstacksize(&attributes, FR_THREAD_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, watch, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error ? fr_fail(FR_MACHINE, "can't start a thread that watches ranks: %s", strerror(error)) : FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- meeting */

static void set_options(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

static bool wait_for(int fd, short events, int milliseconds) {
    struct pollfd polled = {.fd = fd, .events = events};
    int got;
    while ((got = poll(&polled, 1, milliseconds)) < 0 && errno == EINTR) {}
    return got > 0;
}

/* Lists the addresses of this machine, or only loopback if all ranks are on it. */
static void list_addresses(fr_watch_place *place, bool near) {
    struct ifaddrs *all = NULL, *a;
    size_t count = 0;
    if (near) {
        snprintf(place->addresses[0], sizeof *place->addresses, "127.0.0.1");
        return;
    }
    if (getifaddrs(&all)) return;
    for (a = all; a && count < FR_WATCH_ADDRESSES; a = a->ifa_next) {
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || (a->ifa_flags & IFF_LOOPBACK)) continue;
        if (getnameinfo(a->ifa_addr, sizeof(struct sockaddr_in), place->addresses[count], sizeof *place->addresses,
                        NULL, 0, NI_NUMERICHOST) == 0)
            count++;
    }
    freeifaddrs(all);
}

static fr_status listen_at(fr_watch *w, fr_watch_place *place, bool near) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(near ? INADDR_LOOPBACK : INADDR_ANY)};
    socklen_t size = sizeof at;
    w->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (w->listener < 0 || bind(w->listener, (struct sockaddr *)&at, sizeof at) || listen(w->listener, w->count) ||
        getsockname(w->listener, (struct sockaddr *)&at, &size) ||
        getrandom(place->token, sizeof place->token, 0) != sizeof place->token)
        return fr_fail(FR_MACHINE, "%s can't listen for the other ranks: %s", w->peers[0].name, strerror(errno));
    place->port = ntohs(at.sin_port);
    list_addresses(place, near);
    return FR_OK;
}

fr_status fr_watch_open(int index, int count, const char *hosts, bool near, double timeout, fr_watch **watch,
                        fr_watch_place *place) {
    fr_watch *w = *watch = calloc(1, sizeof *w + (size_t)count * sizeof *w->peers);
    if (!w) return fr_fail_memory("ranks", sizeof *w + (size_t)count * sizeof *w->peers);
    w->index = index;
    w->count = count;
    w->starter = getppid();
    atomic_store(&w->missed, -1);
    atomic_store(&w->timeout, timeout);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &monotonic);
    for (int r = 0; r < count; r++) {
        const char *host = hosts + (size_t)r * FR_WATCH_HOST;
        snprintf(w->peers[r].name, NAME, "rank %d (%.*s)", r, FR_WATCH_HOST - 1, host);
        w->peers[r].fd = -1;
    }
    memset(place, 0, sizeof *place);
    return index ? FR_OK : listen_at(w, place, near);
}

/* Holds the first message of a rank to rank 0. */
typedef struct hello {
    uint8_t token[FR_WATCH_TOKEN];
    int32_t rank;
} hello;

static int connect_to(const fr_watch_place *place, const char *address) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(place->port)};
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1) return -1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
    socklen_t size = sizeof error;
    if (fd < 0) return -1;
    bool there = connect(fd, (struct sockaddr *)&at, sizeof at) == 0;
    if (!there && errno == EINPROGRESS && wait_for(fd, POLLOUT, CONNECT_MS))
        there = getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    if (there) return fd;
    close(fd);
    return -1;
}

/* Sends the token to rank 0, which sends it back. The answer proves that the connection reached rank 0. */
static bool greet(const fr_watch *w, const fr_watch_place *place, int fd) {
    hello own = {.rank = w->index};
    uint8_t token[FR_WATCH_TOKEN];
    memcpy(own.token, place->token, sizeof own.token);
    return send(fd, &own, sizeof own, MSG_NOSIGNAL) == (ssize_t)sizeof own && wait_for(fd, POLLIN, MEET_MS) &&
           recv(fd, token, sizeof token, 0) == (ssize_t)sizeof token && memcmp(token, place->token, sizeof token) == 0;
}

static fr_status find_first(fr_watch *w, const fr_watch_place *place) {
    for (size_t i = 0; i < FR_WATCH_ADDRESSES && place->addresses[i][0]; i++) {
        int fd = connect_to(place, place->addresses[i]);
        if (fd < 0) continue;
        set_options(fd);
        if (greet(w, place, fd)) {
            w->peers[0].fd = fd;
            return FR_OK;
        }
        close(fd);
    }
    return fr_fail(FR_MACHINE, "%s can't reach %s by TCP", w->peers[w->index].name, w->peers[0].name);
}

/* Accepts a connection if it comes from a rank that is not connected yet. */
static bool welcome(fr_watch *w, const fr_watch_place *place, int fd) {
    hello theirs;
    if (fd < 0 || !wait_for(fd, POLLIN, HELLO_MS) ||
        recv(fd, &theirs, sizeof theirs, MSG_DONTWAIT) != (ssize_t)sizeof theirs ||
        memcmp(theirs.token, place->token, sizeof theirs.token) != 0)
        return false;
    if (theirs.rank < 1 || theirs.rank >= w->count || w->peers[theirs.rank].fd >= 0) return false;
    if (send(fd, place->token, sizeof place->token, MSG_NOSIGNAL) != (ssize_t)sizeof place->token) return false;
    set_options(fd);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    w->peers[theirs.rank].fd = fd;
    return true;
}

static fr_status await_others(fr_watch *w, const fr_watch_place *place) {
    double end = fr_clock() + MEET_MS / 1e3;
    for (int missing = w->count - 1; missing > 0;) {
        int left = (int)((end - fr_clock()) * 1e3);
        if (left <= 0 || !wait_for(w->listener, POLLIN, left))
            return fr_fail(FR_MACHINE, "%d of %d ranks can't reach %s by TCP", missing, w->count, w->peers[0].name);
        int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
        if (welcome(w, place, fd))
            missing--;
        else if (fd >= 0)
            close(fd);
    }
    close(w->listener);
    return FR_OK;
}

fr_status fr_watch_meet(fr_watch *w, const fr_watch_place *place) {
    FR_TRY(w->index ? find_first(w, place) : await_others(w, place));
    return start_thread(w);
}

/* ---------------------------------------------------------------------------------------------------------- leaving */

int fr_watch_signal(const fr_watch *w) {
    return atomic_load(&w->signal);
}

bool fr_watch_struck(fr_watch *w, int signal_number, bool pass) {
    int before = errno; /* restored at the end, because the interrupted code may still need it */
    bool failed = false;
    for (int looks = 0; looks < STRUCK_LOOKS; looks++) {
        failed = fr_watch_failed(w);
        if (failed || atomic_load(&w->signal)) break;
        poll(NULL, 0, 10);
    }
    if (!failed && pass && !atomic_exchange(&w->own_signal, signal_number)) send_all(w, STRUCK, signal_number, "");
    errno = before;
    return !failed;
}

bool fr_watch_leave(fr_watch *w, int code, const char *line, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds + 1;
    atomic_store(&w->leaving, true);
    if (w->index == 0 && code) fr_watch_fail(w, fr_fail(FR_MACHINE, "%s has failed", w->peers[0].name));
    say_goodbye(w, code, line);
    pthread_mutex_lock(&w->mutex);
    while (!w->settled && atomic_load(&w->missed) != 0 && (code || !fr_watch_failed(w)))
        if (pthread_cond_timedwait(&w->changed, &w->mutex, &until)) break;
    bool all = w->all_leave;
    pthread_mutex_unlock(&w->mutex);
    return all;
}
