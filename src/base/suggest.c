#include "base/suggest.h"

#include <stdbool.h>
#include <string.h>

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool swapped(const char *a, int i, const char *b, int j)
{
    return i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
}

/* The usual table: cost[i][j] makes the first j letters of b of the first i of a. */
int suggest_distance(const char *a, const char *b)
{
    int cost[SUGGEST_WORD_MAX][SUGGEST_WORD_MAX];
    int a_len = (int)strnlen(a, SUGGEST_WORD_MAX);
    int b_len = (int)strnlen(b, SUGGEST_WORD_MAX);
    if (a_len == SUGGEST_WORD_MAX || b_len == SUGGEST_WORD_MAX)
        return SUGGEST_WORD_MAX;
    for (int i = 0; i <= a_len; i++) {
        for (int j = 0; j <= b_len; j++) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            int best = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            best = least(best, cost[i - 1][j] + 1);
            best = least(best, cost[i][j - 1] + 1);
            if (swapped(a, i, b, j))
                best = least(best, cost[i - 2][j - 2] + 1);
            cost[i][j] = best;
        }
    }
    return cost[a_len][b_len];
}

static const char *without_dashes(const char *word)
{
    return word + strspn(word, "-");
}

/* What is compared of a word: no dashes, nothing from a blank on. Empty when it is too long. */
static void plain_word(const char *word, char dst[SUGGEST_WORD_MAX])
{
    const char *at = without_dashes(word);
    size_t n = strcspn(at, " ");
    if (n >= SUGGEST_WORD_MAX)
        n = 0;
    memcpy(dst, at, n);
    dst[n] = '\0';
}

struct suggestion suggest_for(const char *typed)
{
    return (struct suggestion){.typed = without_dashes(typed)};
}

/* A beginning of three letters or more counts as one mistake; otherwise half of the word, and at
 * most three letters of it, may be wrong. */
void suggest_offer(struct suggestion *s, const char *word)
{
    char plain[SUGGEST_WORD_MAX];
    plain_word(word, plain);
    size_t typed_len = strlen(s->typed);
    int distance = suggest_distance(s->typed, plain);
    if (typed_len >= 3 && strncmp(s->typed, plain, typed_len) == 0)
        distance = least(distance, 1);
    if (distance > 3 || distance * 2 > (int)strlen(plain))
        return;
    if (!s->best || distance < s->distance) {
        s->best = word;
        s->distance = distance;
    }
}
