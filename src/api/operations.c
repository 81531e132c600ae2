/* The table of operations. Its order is that of the documentation. Rows stand in the files of what
 * they are about. */
#include "api/access.h"
#include "api/call.h"
#include "api/cluster.h"
#include "api/feed.h"
#include "api/host.h"
#include "api/lookup.h"
#include "api/operation.h"
#include "api/operation_fields.h"
#include "api/past.h"
#include "api/play.h"
#include "api/players.h"
#include "api/pubsub.h"
#include "api/resource.h"
#include "api/resource_allocation.h"
#include "api/resource_insight.h"
#include "api/resource_lobby.h"
#include "api/resource_room.h"
#include "base/err.h"
#include "wire/settings.h"

const struct operation operations[] = {
/* clang-format off */
#include "api/operations_look.def"
#include "api/operations_rooms.def"
#include "api/operations_allocate.def"
#include "api/operations_lobbies.def"
#include "api/operations_manage.def"
#include "api/operations_play.def"
    /* clang-format on */
    {
        .name = "deploy",
        .method = HTTP_POST,
        .path = "/v1/deployments",
        .scope = ACCESS_ADMIN,
        .summary = "Upload an archive as a deployment of a version.",
        .about =
            "The body is a tar.gz or zip of at most 4 GiB. It is unpacked for a look before it "
            "is kept: names that lead out of it, links and devices are refused. Agents fetch "
            "it before the first server of theirs that needs it. Servers are started from it "
            "after POST /v1/deployments/{id}/switch.",
        .fields = {{.name = "fleet",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 1,
                    .max = 63,
                    .help = "the fleet, by its name or number"},
                   {.name = "version",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 1,
                    .max = 32,
                    .help = "the version that players name; made when it is new"}},
        .answer = &deployment_shape,
        .errors = {ERR_WRONG_PROVIDER, ERR_BAD_ARCHIVE, ERR_IO, ERR_TOO_MANY},
        .handle = handle_deploy,
        .upload = true,
    },
    {
        .name = "get_archive",
        .method = HTTP_GET,
        .path = "/v1/deployments/{digest}/archive",
        .scope = ACCESS_HOST,
        .summary = "The archive of a deployment, as it was uploaded.",
        .about = "Every node of a cell answers it, with what it has.",
        .fields = {{.name = "digest",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 64,
                    .max = 64,
                    .help = "its SHA-256 in hexadecimal"}},
        .content_type = "application/octet-stream",
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_archive,
        .by_any_node = true,
    },
    {
        .name = "pubsub_push",
        .method = HTTP_POST,
        .path = "/v1/pubsub/push",
        .others_token = "Google's, for the audience and the account that the configuration names",
        .summary = "A request for an allocation that Google Pub/Sub pushes.",
        .about = "The endpoint of a push subscription with authentication. Answered when the "
                 "result is published, or when the message has gone to the dead letters because "
                 "it cannot be read. Anything else than 204 brings the message again.",
        .asks = &pubsub_push_shape,
        .body_max = PUSH_MAX,
        .errors = {ERR_NO_ACCESS_TOKEN, ERR_BAD_ACCESS_TOKEN, ERR_NOT_FOUND},
        .handle = handle_pubsub_push,
        .silent = true,
    },
};

const size_t n_operations = sizeof(operations) / sizeof(operations[0]);
