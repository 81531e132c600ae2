/* Forwarded requests: whose a request is that came through proxies. A proxy is believed only when
 * the configuration lists it; everybody else can write what he likes into a head. Pure. */
#pragma once

#include "base/str.h"
#include "net/address.h"

#include <stddef.h>

/* Writes the client's address (IPv4 where it is one, no port) into dst and returns it: that of the
 * socket, `peer`; when that is a listed proxy, the last address in `chain` (X-Forwarded-For) that
 * is none; without a chain, `real` (X-Real-IP, or NULL). Reading stops at what is no address. */
const char *forwarded_client(const struct address_range *proxies, size_t n_proxies,
                             const char *peer, struct str chain, const char *real,
                             char dst[ADDRESS_MAX]);
