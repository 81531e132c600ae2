/* The effective configuration for people: as YAML that can be loaded again, as a digest, and the
 * keys there are as a table. Text is appended to the caller's buffer. Tokens appear as hashes only.
 */
#pragma once

#include "base/buf.h"
#include "cli/config.h"

enum { CONFIG_DIGEST_MAX = 17 };

/* Appends YAML; comments say units and meanings. */
void config_show(const struct config *config, bool comments, struct buf *out);

/* 16 hex digits and a NUL over all that config_show prints: equal digests, equal settings. */
void config_digest(const struct config *config, char ret[CONFIG_DIGEST_MAX]);

/* Appends a Markdown table of every key (default, values, reload, meaning) and one of the keys that
 * a fleet may have. */
void config_show_keys(struct buf *out);
