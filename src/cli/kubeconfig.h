/* A kubeconfig, the file kubectl reads: where a cluster is and who we are there, as its current
 * context says.
 *
 * Keys and certificates that stand in the file itself are kept in memory, under a name that opens
 * like a file's; nothing is written to a disk. Owned by whoever opened it; everything it gave is
 * valid until kubeconfig_done. */
#pragma once

#include "api/agones.h"

struct kubeconfig;

/* Fills those of config's url, ca_file, token_file, certificate and key that are empty. 0, or
 * ERR_FORMAT or ERR_IO with a sentence. */
int kubeconfig_open(const char *file, struct agones_config *config, struct kubeconfig **ret,
                    char why[256]);
void kubeconfig_done(struct kubeconfig *k); /* NULL is fine */
