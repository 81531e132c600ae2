/* Ports: whether we can have them, or who has them. Certificates: whether they can be used, and for
 * how long. */
#include "base/clock.h"
#include "cli/doctor.h"
#include "net/address.h"
#include "net/tls.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DAY_S = 24 * 3600, SOON_DAYS = 14, LISTEN_STATE = 0x0A };

/* ── who has a port ────────────────────────────────────────────────────────────────────────── */

static unsigned long listening_in(const char *file, unsigned port)
{
    char line[512];
    unsigned long found = 0;
    FILE *f = fopen(file, "re");
    while (f && !found && fgets(line, sizeof(line), f)) {
        bool listens = doctor_number(line, 3, 0, 16) == LISTEN_STATE;
        if (listens && doctor_number(line, 1, ':', 16) == port)
            found = doctor_number(line, 9, 0, 10);
    }
    if (f)
        (void)fclose(f);
    return found;
}

static bool has_socket(const char *pid, unsigned long inode)
{
    char folder[64];
    char wanted[64];
    char path[PATH_MAX];
    char target[64];
    bool found = false;
    (void)snprintf(folder, sizeof(folder), "/proc/%.16s/fd", pid);
    (void)snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
    DIR *dir = opendir(folder);
    for (struct dirent *e = NULL; dir && !found && (e = readdir(dir));) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        found = strcmp(target, wanted) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

/* 0 when we may not see it. */
static pid_t owner_of(unsigned long inode)
{
    pid_t found = 0;
    DIR *proc = inode ? opendir("/proc") : NULL;
    for (struct dirent *e = NULL; proc && !found && (e = readdir(proc));) {
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && has_socket(e->d_name, inode))
            found = (pid_t)strtol(e->d_name, NULL, 10);
    }
    if (proc)
        closedir(proc);
    return found;
}

static void name_of(pid_t pid, char ret[32])
{
    char path[64];
    ret[0] = '\0';
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(ret, 32, f))
        ret[strcspn(ret, "\n")] = '\0';
    if (f)
        (void)fclose(f);
}

static void tell_taken(struct doctor *d, const char *check, const char *where, uint16_t port)
{
    unsigned long inode = listening_in("/proc/net/tcp", port);
    char name[32];
    pid_t pid = owner_of(inode ? inode : listening_in("/proc/net/tcp6", port));
    if (pid && pid == d->holder) {
        doctor_say(d, check, DOCTOR_OK,
                   "%s is held by the Muster that uses the data folder (pid %d).", where, (int)pid);
        return;
    }
    name_of(pid, name);
    if (pid)
        doctor_say(d, check, DOCTOR_PROBLEM, "%s is held by %s (pid %d).", where, name, (int)pid);
    else
        doctor_say(d, check, DOCTOR_PROBLEM, "%s is held by a process of somebody else.", where);
    doctor_advise(d, "Stop it, or choose another port in the configuration.%s",
                  pid ? "" : " As root this says which one it is.");
}

/* ── ports ─────────────────────────────────────────────────────────────────────────────────── */

/* 0 when we could listen there, else errno. */
static int try_port(const union address *address)
{
    int on = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    int err =
        bind(fd, &address->any,
             address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6)) != 0 ||
                listen(fd, 1) != 0
            ? errno
            : 0;
    close(fd);
    return err;
}

static void check_port(struct doctor *d, const char *check, const char *ip, uint16_t port)
{
    union address address;
    char where[ADDRESS_MAX + 8];
    (void)snprintf(where, sizeof(where), "%s port %u", ip, port);
    if (port == 0 || !address_parse(ip, port, &address))
        return; /* any free one; and a bad address is a mistake of the configuration */
    int err = try_port(&address);
    if (err == 0) {
        doctor_say(d, check, DOCTOR_OK, "%s is free.", where);
        return;
    }
    if (err == EADDRINUSE) {
        tell_taken(d, check, where, port);
        return;
    }
    doctor_say(d, check, DOCTOR_PROBLEM, "%s cannot be listened on: %s.", where, strerror(err));
    doctor_advise(d, err == EACCES ? "Ports below 1024 are the system's: choose a higher one."
                     : err == EADDRNOTAVAIL
                         ? "That is no address of this machine: choose one of 'ip address'."
                         : "Look at the address in the configuration.");
}

void doctor_check_ports(struct doctor *d)
{
    const struct config *c = d->config;
    check_port(d, "HTTP port", config_http_bind(c), c->http_port);
    check_port(d, "server port", c->bind_ip, c->server_port);
    check_port(d, "manager port", c->bind_ip, c->manager_port);
    check_port(d, "client port", c->bind_ip, c->client_port);
}

/* ── certificates ──────────────────────────────────────────────────────────────────────────── */

static void check_certificate(struct doctor *d, const char *check, const struct config_tls *files)
{
    struct tls *tls = NULL;
    char why[TLS_WHY_MAX];
    struct tls_files paths = {files->certificate, files->key, files->client_ca};
    if (!files->certificate[0])
        return;
    if (tls_load(&paths, &tls, why) != 0) {
        doctor_say(d, check, DOCTOR_PROBLEM, "It cannot be used: %s.", why);
        doctor_advise(d, "Renew it, or make the files readable for the user that runs Muster; a "
                         "running Muster takes new ones with SIGHUP.");
        return;
    }
    int64_t days = (tls_expires_s(tls) - clock_wall_ms() / 1000) / DAY_S;
    tls_free(tls);
    doctor_say(d, check, days < SOON_DAYS ? DOCTOR_WARNING : DOCTOR_OK,
               "%s is valid for %" PRId64 " more days.", files->certificate, days);
    if (days < SOON_DAYS)
        doctor_advise(d, "Renew it soon; a running Muster takes the new one with SIGHUP.");
}

void doctor_check_tls(struct doctor *d)
{
    check_certificate(d, "HTTP certificate", &d->config->tls_http);
    check_certificate(d, "server certificate", &d->config->tls_server);
    check_certificate(d, "manager certificate", &d->config->tls_manager);
    check_certificate(d, "client certificate", &d->config->tls_client);
}
