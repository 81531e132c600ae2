/* IP addresses as people write them and as keys to count by. Pure functions; nothing is owned. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESS_MAX = 64 }; /* "[" + an IPv6 address + "]:65535" and its NUL fit */

/* An IPv4 or IPv6 socket address; smaller than sockaddr_storage, since every connection keeps one.
 */
union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* ip is "127.0.0.1" or "::1", never a name. False when it is neither. */
bool address_parse(const char *ip, uint16_t port, union address *ret);

/* "127.0.0.1:80" or "[::1]:80". Returns dst. */
const char *address_print(const union address *a, char dst[ADDRESS_MAX]);

/* Who to count a connection against: an IPv4 address (mapped ones too), or the /64 of an IPv6
 * address, since whoever has one address there has them all. */
uint64_t address_key(const union address *a);

bool address_is_loopback(const union address *a);

/* A network: the addresses whose first `bits` bits are those of `ip`. IPv4 is held as its mapped
 * IPv6 address, so 10.0.0.0/8 has 104 bits. */
struct address_range {
    struct in6_addr ip;
    int bits;
};

/* "10.0.0.0/8", "2001:db8::/32" or one address. False when it is none, or when bits after the first
 * `bits` are set, which is a slip. */
bool address_range_parse(const char *text, struct address_range *ret);
bool address_range_has(const struct address_range *range, const union address *a);

/* "10.0.0.0/8"; one address without its bits. Returns dst. */
const char *address_range_print(const struct address_range *range, char dst[ADDRESS_MAX]);
