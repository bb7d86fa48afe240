/* Keeps the certificate and the key for TLS, which can be replaced while the server runs.
 *
 * In: the certificate and the key as PEM texts. Out: both for each handshake. libmicrohttpd gets them through its
 * option MHD_OPTION_HTTPS_CERT_CALLBACK. */
#ifndef FR_TOOLS_SERVE_TLS_H
#define FR_TOOLS_SERVE_TLS_H

#include <gnutls/abstract.h>
#include <stdbool.h>
#include <stddef.h>

/* Uses this key and certificate for all handshakes from now on. If they can't be used, returns false. Then `error` has
 * the reason, and the old key and certificate stay in use. The function may be called from any thread. */
bool fr_tls_set(const char *key_pem, const char *certificate_pem, char *error, size_t size);

/* Gives the certificate and the key for a handshake. This callback of GnuTLS gets no context, so a process can have
 * only one certificate. */
int fr_tls_retrieve(gnutls_session_t session, const gnutls_datum_t *issuers, int issuer_count,
                    const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **chain,
                    unsigned *length, gnutls_privkey_t *key);

/* Frees all certificates and keys. Call it when no connection is left. */
void fr_tls_free(void);

#endif
