/* Makes serve a service of systemd. It uses the socket that systemd has opened for it. It tells systemd when it is
 * ready and when it ends, and from time to time that it is alive.
 *
 * In: variables of the environment (LISTEN_FDS and LISTEN_PID, NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID), as
 * sd_listen_fds(3), sd_notify(3) and sd_watchdog_enabled(3) document them. Without these variables all functions do
 * nothing. */
#ifndef FR_TOOLS_SERVE_SERVICE_H
#define FR_TOOLS_SERVE_SERVICE_H

/* If systemd has started the process with a listening socket, gives it in *socket; otherwise -1. Returns the exit
 * status, which is 1 after an error line if there are several sockets. */
int fr_service_socket(int *socket);

/* Tells systemd a state such as "READY=1". */
void fr_service_tell(const char *state);

/* Tells systemd that the server is alive. If less than a third of systemd's limit has passed since the last time, does
 * nothing. Call it often, from the thread whose work must not hang. */
void fr_service_is_alive(void);

#endif
