/* Keeps the certificate and the key for TLS, which can be replaced while the server runs.
 *
 * In: both as PEM texts. Out: the certificate and key for each handshake. libmicrohttpd asks for them by its option
 * MHD_OPTION_HTTPS_CERT_CALLBACK. */
#ifndef FR_TOOLS_SERVE_TLS_H
#define FR_TOOLS_SERVE_TLS_H

#include <gnutls/abstract.h>
#include <stdbool.h>
#include <stddef.h>

/* Uses this key and certificate for all handshakes from now on. Returns false if they can't be used; `error` then has
 * the reason, and the old ones stay in use. May be called from any thread. */
bool fr_tls_set(const char *key_pem, const char *certificate_pem, char *error, size_t size);

/* Gives the certificate and the key for a handshake. This callback of GnuTLS gets no context, so a process can have
 * only one certificate. */
int fr_tls_retrieve(gnutls_session_t session, const gnutls_datum_t *issuers, int issuer_count,
                    const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **chain,
                    unsigned *length, gnutls_privkey_t *key);

/* Frees all certificates and keys. Call it when no connection is left. */
void fr_tls_free(void);

#endif
