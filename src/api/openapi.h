/* The API's description, made from the operation table: as OpenAPI 3.1 for machines and as Markdown
 * for people. */
#pragma once

#include "base/buf.h"

/* Appends the OpenAPI document, as JSON. */
void openapi_write(struct buf *out);

/* Appends docs/http-api.md (reference.c). */
void openapi_write_markdown(struct buf *out);
