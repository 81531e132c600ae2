#include "api/forwarded.h"

#include <arpa/inet.h>
#include <string.h>

static bool is_listed(const struct address_range *proxies, size_t n, const union address *a)
{
    for (size_t i = 0; i < n; i++) {
        if (address_range_has(&proxies[i], a))
            return true;
    }
    return false;
}

static struct str trim(struct str s)
{
    while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
        s = (struct str){s.at + 1, s.len - 1};
    while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* "[::1]:80" and "192.0.2.7:80" as some proxies write them, without the port. */
static struct str without_port(struct str s)
{
    const char *colon = s.len > 0 ? memchr(s.at, ':', s.len) : NULL;
    if (s.len > 0 && s.at[0] == '[') {
        const char *end = memchr(s.at, ']', s.len);
        return end ? (struct str){s.at + 1, (size_t)(end - s.at) - 1} : s;
    }
    bool one = colon && !memchr(colon + 1, ':', s.len - (size_t)(colon + 1 - s.at));
    return one ? (struct str){s.at, (size_t)(colon - s.at)} : s;
}

static bool read_address(struct str text, union address *ret)
{
    char copy[ADDRESS_MAX];
    return str_copy(copy, sizeof(copy), without_port(trim(text))) && address_parse(copy, 0, ret);
}

/* A mapped address is the IPv4 one, so that a ban or a rate does not depend on the socket's kind.
 */
static const char *print(const union address *a, char dst[ADDRESS_MAX])
{
    if (a->any.sa_family == AF_INET)
        inet_ntop(AF_INET, &a->v4.sin_addr, dst, ADDRESS_MAX);
    else if (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
        inet_ntop(AF_INET, &a->v6.sin6_addr.s6_addr[12], dst, ADDRESS_MAX);
    else
        inet_ntop(AF_INET6, &a->v6.sin6_addr, dst, ADDRESS_MAX);
    return dst;
}

/* Takes the last element off; false when there is none. */
static bool take_last(struct str *chain, struct str *ret)
{
    if (chain->len == 0)
        return false;
    const char *comma = memrchr(chain->at, ',', chain->len);
    const char *from = comma ? comma + 1 : chain->at;
    *ret = (struct str){from, (size_t)(chain->at + chain->len - from)};
    chain->len = comma ? (size_t)(comma - chain->at) : 0;
    return true;
}

const char *forwarded_client(const struct address_range *proxies, size_t n_proxies,
                             const char *peer, struct str chain, const char *real,
                             char dst[ADDRESS_MAX])
{
    union address client, next;
    struct str last;
    if (n_proxies == 0 || !address_parse(peer, 0, &client)) {
        (void)str_copy(dst, ADDRESS_MAX, str_of(peer));
        return dst;
    }
    if (chain.len == 0 && real && is_listed(proxies, n_proxies, &client) &&
        read_address(str_of(real), &next))
        return print(&next, dst);
    while (is_listed(proxies, n_proxies, &client) && take_last(&chain, &last) &&
           read_address(last, &next))
        client = next;
    return print(&client, dst);
}
