/* What is wrong with a YAML file, in the words of somebody who writes one: libyaml and libcyaml
 * speak of events and tokens. Texts are written into what the caller owns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { YAML_WORDS_MAX = 320 };

/* True for one well-formed document; otherwise ret says line, column and mistake. */
bool yaml_is_one_document(const char *text, size_t len, char ret[YAML_WORDS_MAX]);

/* libcyaml's complaint about the value at place ("tokens, entry 2, role"; "" = the whole file) as
 * "place: what must be there", in ret. Place is cut where it says too much. */
void yaml_words(char *place, const char *complaint, char ret[YAML_WORDS_MAX]);
