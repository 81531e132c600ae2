/* What tells an operator how things go. Answered without core's help, as metrics are, so that it is
 * answered when the disk hangs, too. */
#include "api/call.h"
#include "api/checkup_look.h"
#include "api/resource_insight.h"
#include "api/trend.h"

#include <string.h>

void handle_trends(struct call *c)
{
    const struct argument *window = call_argument(c, "window");
    const struct argument *limit = call_argument(c, "limit");
    struct trends_answer answer = {.trends = c->rest->trends};
    if (window->given && strcmp(window->text.at, trend_window_words[TREND_DAY]) == 0)
        answer.window = TREND_DAY;
    answer.step_ms = trends_step_ms(answer.window);
    size_t n = trends_count(answer.trends, answer.window);
    if (n > (size_t)limit->number)
        answer.first = n - (size_t)limit->number;
    call_render(c, &trends_shape, &answer);
    call_answer(c);
}

void handle_checkup(struct call *c)
{
    struct checkup_answer answer = checkup_look(c->rest, &c->arguments.arena);
    call_render(c, &checkup_shape, &answer);
    call_answer(c);
}
