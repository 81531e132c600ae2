/* Prometheus' text format: families, samples, labels. Everything is appended to the caller's
 * buffer; nothing is kept. */
#pragma once

#include "base/buf.h"
#include "base/histogram.h"

#include <stddef.h>
#include <stdint.h>

enum { LABELS_MAX = 512 };

/* Labels of a sample as they are written, without the braces. */
struct labels {
    char text[LABELS_MAX];
    size_t len;
};

/* Adds key="value", escaped; what does not fit is left out, so a value may be cut but is never
 * malformed. To take labels off again, put the old len back. */
void labels_add(struct labels *l, const char *key, const char *value);

void exposition_family(struct buf *out, const char *name, const char *type, const char *help);
void exposition_sample(struct buf *out, const char *name, const struct labels *l, int64_t value);

/* value / unit, exactly: units are powers of ten. */
void exposition_decimal(struct buf *out, const char *name, const struct labels *l, int64_t value,
                        int64_t unit);
void exposition_real(struct buf *out, const char *name, const struct labels *l, double value);

/* _bucket, _sum and _count. */
void exposition_histogram(struct buf *out, const char *name, const struct labels *l,
                          const struct histogram *h, const struct histogram_scale *scale);
