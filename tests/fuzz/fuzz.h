/* What a fuzz target is: one function over bytes. libFuzzer calls it with what it invents, replay.c
 * with the files of the corpus. A target that finds a fault aborts. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
