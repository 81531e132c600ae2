/* The shapes of what tells an operator how things go: a checkup, trends. Constants. */
#pragma once

#include "api/checkup.h"
#include "api/shape.h"
#include "api/trend.h"

extern const struct shape trend_point_shape; /* struct trend_point */
extern const struct shape trends_shape;      /* struct trends_answer */

extern const struct shape finding_shape; /* struct checkup_finding */
extern const struct shape checkup_shape; /* struct checkup_answer */

struct checkup_answer {
    const struct checkup *found;
    const char *status;
    const char *sentence;
    int64_t wall_ms;
};

extern const char *const trend_window_words[]; /* by enum trend_window; closed by NULL */

struct trends_answer {
    const struct trends *trends;
    enum trend_window window;
    size_t first; /* the oldest point that is shown */
    int64_t step_ms;
};
