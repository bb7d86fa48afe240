/* Makes serve a service of systemd. It takes over the socket that systemd opened for it, and tells systemd when it is
 * ready, that it is alive, and that it ends.
 *
 * In: variables of the environment (LISTEN_FDS and LISTEN_PID, NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID), as
 * sd_listen_fds(3), sd_notify(3) and sd_watchdog_enabled(3) document them. Without these variables all functions do
 * nothing. */
#ifndef FR_TOOLS_SERVE_SERVICE_H
#define FR_TOOLS_SERVE_SERVICE_H

/* Gives the listening socket with which systemd started the process, or -1 if there is none. Returns the exit status,
 * which is 1 after an error line if there are several sockets. */
int fr_service_socket(int *socket);

/* Tells systemd a state such as "READY=1". */
void fr_service_tell(const char *state);

/* Tells systemd that the server is alive, unless it did so during the last third of systemd's limit. Call it often,
 * from the thread whose work must not hang. */
void fr_service_is_alive(void);

#endif
