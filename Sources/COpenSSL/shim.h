// SPDX-License-Identifier: MIT
//
// OpenSSL's macros and variadic functions, as functions that Swift can call.

#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// A macro over SSL_CTX_ctrl.
static inline int copenssl_ctx_set_min_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

// A macro over SSL_CTX_ctrl.
static inline int copenssl_ctx_set_max_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}

// A macro over SSL_CTX_ctrl; the context gets a reference of its own.
static inline int copenssl_ctx_add1_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

// EVP_EC_gen is a macro over a variadic function.
static inline EVP_PKEY *copenssl_generate_p256_key(void) {
    return EVP_EC_gen("P-256");
}

// A macro over BIO_ctrl; the bytes belong to the BIO.
static inline long copenssl_bio_bytes(BIO *bio, char **bytes) {
    return BIO_get_mem_data(bio, bytes);
}

// X509V3_set_ctx is a function, but the database that it leaves unset is cleared by a macro.
static inline X509V3_CTX copenssl_extension_context(X509 *issuer, X509 *subject) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, subject, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&context);
    return context;
}

#endif
