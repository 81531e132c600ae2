#include "net/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool address_parse(const char *ip, uint16_t port, union address *ret)
{
    union address a = {0};
    if (inet_pton(AF_INET, ip, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons(port);
    } else if (inet_pton(AF_INET6, ip, &a.v6.sin6_addr) == 1) {
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons(port);
    } else {
        return false;
    }
    *ret = a;
    return true;
}

const char *address_print(const union address *a, char dst[ADDRESS_MAX])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    if (a->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, ip, sizeof(ip));
        snprintf(dst, ADDRESS_MAX, "[%s]:%u", ip, ntohs(a->v6.sin6_port));
    } else {
        inet_ntop(AF_INET, &a->v4.sin_addr, ip, sizeof(ip));
        snprintf(dst, ADDRESS_MAX, "%s:%u", ip, ntohs(a->v4.sin_port));
    }
    return dst;
}

/* Above every IPv4 address stands all ones: as an IPv6 /64 that would be multicast, which nobody
 * connects from, so the two kinds of key never meet. */
static uint64_t v4_key(uint32_t network_order)
{
    return UINT64_C(0xFFFFFFFF00000000) | ntohl(network_order);
}

uint64_t address_key(const union address *a)
{
    if (a->any.sa_family != AF_INET6)
        return v4_key(a->v4.sin_addr.s_addr);
    const uint8_t *bytes = a->v6.sin6_addr.s6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr)) {
        uint32_t v4 = 0;
        memcpy(&v4, bytes + 12, sizeof(v4));
        return v4_key(v4);
    }
    uint64_t key = 0;
    for (int i = 0; i < 8; i++)
        key = key << 8 | bytes[i];
    return key;
}

bool address_is_loopback(const union address *a)
{
    if (a->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
    return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
}

static struct in6_addr mapped(const union address *a)
{
    if (a->any.sa_family == AF_INET6)
        return a->v6.sin6_addr;
    struct in6_addr ret = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(&ret.s6_addr[12], &a->v4.sin_addr, sizeof(a->v4.sin_addr));
    return ret;
}

static int bit_of(const struct in6_addr *ip, int i)
{
    return ip->s6_addr[i / 8] >> (7 - i % 8) & 1;
}

/* "/24" of an IPv4 or IPv6 address, counted in 128 bits; -1 when it is none. */
static int read_bits(const char *text, bool v4)
{
    size_t len = strlen(text);
    if (len == 0 || len > 3 || strspn(text, "0123456789") != len)
        return -1;
    long n = strtol(text, NULL, 10);
    return n > (v4 ? 32 : 128) ? -1 : (int)n + (v4 ? 96 : 0);
}

bool address_range_parse(const char *text, struct address_range *ret)
{
    char ip[INET6_ADDRSTRLEN];
    union address a;
    size_t len = strcspn(text, "/");
    if (len >= sizeof(ip))
        return false;
    memcpy(ip, text, len);
    ip[len] = '\0';
    if (!address_parse(ip, 0, &a))
        return false;
    bool v4 = a.any.sa_family == AF_INET;
    struct address_range range = {.ip = mapped(&a), .bits = 128};
    if (text[len] == '/')
        range.bits = read_bits(text + len + 1, v4);
    for (int i = range.bits; i >= 0 && i < 128; i++) {
        if (bit_of(&range.ip, i))
            return false;
    }
    if (range.bits < 0)
        return false;
    *ret = range;
    return true;
}

bool address_range_has(const struct address_range *range, const union address *a)
{
    struct in6_addr ip = mapped(a);
    for (int i = 0; i < range->bits; i++) {
        if (bit_of(&ip, i) != bit_of(&range->ip, i))
            return false;
    }
    return true;
}

const char *address_range_print(const struct address_range *range, char dst[ADDRESS_MAX])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    bool v4 = IN6_IS_ADDR_V4MAPPED(&range->ip) && range->bits >= 96;
    inet_ntop(v4 ? AF_INET : AF_INET6, &range->ip.s6_addr[v4 ? 12 : 0], ip, sizeof(ip));
    if (range->bits == 128)
        snprintf(dst, ADDRESS_MAX, "%s", ip);
    else
        snprintf(dst, ADDRESS_MAX, "%s/%d", ip, range->bits - (v4 ? 96 : 0));
    return dst;
}
