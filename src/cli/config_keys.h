/* Every key of the configuration file that has one value, declared once: the schema, the checks,
 * `muster config show`, `muster config keys`, the digest and what a reload says follow from these
 * rows. Lists (regions, fleets, tokens, access keys) have code of their own in config_take.c and
 * config_show.c.
 *
 * X(struct of the document, section, key, place in struct config, kind, when, meaning)
 * Kinds and whens are rows of setting.c. RELOADS: SIGHUP takes a new value; STAYS: it is said that
 * the old one stays until a restart. Meanings begin with a small letter and have no full stop. */
#pragma once

#define CONFIG_LISTEN(X)                                                                           \
    X(doc_listen, listen, bind, bind_ip, IP, STAYS, "address of the chat ports")                   \
    X(doc_listen, listen, server_port, server_port, PORT, STAYS,                                   \
      "game servers' port; 0 picks a free one")                                                    \
    X(doc_listen, listen, manager_port, manager_port, PORT, STAYS,                                 \
      "chat servers' port; 0 picks a free one")                                                    \
    X(doc_listen, listen, client_port, client_port, PORT, STAYS,                                   \
      "players' port; 0 picks a free one")                                                         \
    X(doc_listen, listen, connections, connections, CONNECTIONS, STAYS,                            \
      "of game servers and chat servers; more are closed at once")                                 \
    X(doc_listen, listen, connections_per_address, connections_per_address, CONNECTIONS, STAYS,    \
      "an IPv6 address counts by its /64; raise it for a fleet behind one address translator")     \
    X(doc_listen, listen, client_connections, client_connections, CONNECTIONS, STAYS,              \
      "of players; more are closed at once")                                                       \
    X(doc_listen, listen, client_connections_per_address, client_connections_per_address,          \
      CONNECTIONS, STAYS, "an IPv6 address counts by its /64; many players may share one")

#define CONFIG_HTTP(X)                                                                             \
    X(doc_http, http, bind, http_bind_ip, IP, STAYS,                                               \
      "address of the HTTP port; listen.bind when not given")                                      \
    X(doc_http, http, port, http_port, PORT, STAYS, "HTTP port; 0 picks a free one")               \
    X(doc_http, http, connections, http_connections, CONNECTIONS, STAYS,                           \
      "more are closed at once")                                                                   \
    X(doc_http, http, connections_per_address, http_connections_per_address, CONNECTIONS, STAYS,   \
      "an IPv6 address counts by its /64")                                                         \
    X(doc_http, http, metrics, metrics_open, METRICS, RELOADS,                                     \
      "who may read /metrics: token = an access token with scope "                                 \
      "muster_read, open = everybody")

#define CONFIG_TLS(X, port)                                                                        \
    X(doc_files, tls.port, certificate, tls_##port.certificate, FILE_PATH, RELOADS,                \
      "PEM file, the chain; \"\" = the port is plain")                                             \
    X(doc_files, tls.port, key, tls_##port.key, FILE_PATH, RELOADS,                                \
      "PEM file, without a passphrase")                                                            \
    X(doc_files, tls.port, client_ca, tls_##port.client_ca, FILE_PATH, RELOADS,                    \
      "PEM file; clients must be signed by it; \"\" = they need no certificate")

#define CONFIG_LOG(X)                                                                              \
    X(doc_log, log, level, log_level, LEVEL, RELOADS, "lines above it are not written")            \
    X(doc_log, log, format, log_format, FORMAT, RELOADS, "of the lines on standard error")

#define CONFIG_ACCESS(X)                                                                           \
    X(doc_access, access, gamespace, gamespace, NAME, STAYS, "what access tokens must be for")     \
    X(doc_access, access, login_url, login_url, URL, RELOADS,                                      \
      "login service that extends players' tokens and makes those of game servers, see "           \
      "login.md; \"\" = none")

#define CONFIG_GEO(X)                                                                              \
    X(doc_geo, geo, file, geo_file, FILE_PATH, RELOADS,                                            \
      "MaxMind database (.mmdb) that says where addresses are; \"\" = not known")

#define CONFIG_ROUTES(X)                                                                           \
    X(doc_routes, routes, quilkin_file, quilkin_file, FILE_PATH, STAYS,                            \
      "file of Quilkin's file provider, rewritten whenever a routing token comes or goes; \"\" = " \
      "none")                                                                                      \
    X(doc_routes, routes, quilkin_filters, quilkin_filters, FILTERS, STAYS,                        \
      "suffix = the file also has the filters that take the token off a packet's end and route "   \
      "by it; none = the proxy has them from elsewhere")

#define CONFIG_HISTORY(X)                                                                          \
    X(doc_history, history, max_mb, history_max_mb, HISTORY_MB, STAYS,                             \
      "what happened to players and here, kept in the data folder up to so many MiB; 0 = nothing") \
    X(doc_history, history, days, history_days, HISTORY_DAYS, STAYS,                               \
      "... and no longer than this; 0 = nothing")

#define CONFIG_CLUSTER(X)                                                                          \
    X(doc_cluster, cluster, store, cluster.store, SECRET, STAYS,                                   \
      "PostgreSQL that keeps everything, as postgres://user@host/database; \"\" = the data "       \
      "folder")                                                                                    \
    X(doc_cluster, cluster, cell, cluster.cell, NAME, STAYS,                                       \
      "name of the cell there, of a-z 0-9 _: nodes with the same one lead it in turn")             \
    X(doc_cluster, cluster, node, cluster.node, TEXT, STAYS,                                       \
      "name of this node, for people; \"\" = the host's")                                          \
    X(doc_cluster, cluster, lease_ms, cluster.lease_ms, LEASE_MS, STAYS,                           \
      "a leader that was not heard for this long is replaced; the same on all nodes")              \
    X(doc_cluster, cluster, advertise_http, cluster.http, URL, STAYS,                              \
      "where others reach our HTTP port, as http://10.0.0.1:9508; \"\" = where we listen, which "  \
      "must be one address then")                                                                  \
    X(doc_cluster, cluster, advertise_server, cluster.server, TEXT, STAYS,                         \
      "... the game servers' port, as 10.0.0.1:11032; \"\" = on the same host, as the next two")   \
    X(doc_cluster, cluster, advertise_manager, cluster.manager, TEXT, STAYS,                       \
      "... the chat servers' port")                                                                \
    X(doc_cluster, cluster, advertise_client, cluster.client, TEXT, STAYS,                         \
      "... the players' port")                                                                     \
    X(doc_cluster, cluster, ca_file, cluster.ca_file, FILE_PATH, STAYS,                            \
      "PEM file of whom to trust when other nodes' HTTP ports speak TLS; \"\" = whom the system "  \
      "trusts")

#define CONFIG_NATS(X)                                                                             \
    X(doc_nats, nats, credentials_file, nats.credentials_file, FILE_PATH, STAYS,                   \
      "of a user with a JWT (.creds); \"\" = none")                                                \
    X(doc_nats, nats, user, nats.user, TEXT, STAYS, "a user's name, with ...")                     \
    X(doc_nats, nats, password, nats.password, SECRET, STAYS, "... his password")                  \
    X(doc_nats, nats, token, nats.token, SECRET, STAYS, "... or a token")                          \
    X(doc_nats, nats, ca_file, nats.ca_file, FILE_PATH, STAYS,                                     \
      "PEM file of whom to trust with tls://; \"\" = whom the system trusts")                      \
    X(doc_nats, nats, request_subject, nats.request_subject, NAME, STAYS, "where requests come")   \
    X(doc_nats, nats, result_subject, nats.result_subject, NAME, STAYS, "where results go")        \
    X(doc_nats, nats, dead_subject, nats.dead_subject, NAME, STAYS,                                \
      "where messages go that cannot be answered")                                                 \
    X(doc_nats, nats, stream, nats.stream, NAME, STAYS, "made over these when there is none")      \
    X(doc_nats, nats, durable, nats.durable, NAME, STAYS,                                          \
      "name of the consumer, made when there is none")                                             \
    X(doc_nats, nats, max_deliver, nats.max_deliver, DELIVERIES, STAYS,                            \
      "a message that came more often goes where the dead ones go")                                \
    X(doc_nats, nats, ack_wait_ms, nats.ack_wait_ms, MS, STAYS,                                    \
      "silence after which the broker gives a message again; of a consumer that is made")

#define CONFIG_PUBSUB(X)                                                                           \
    X(doc_pubsub, pubsub, project, pubsub.project, TEXT, STAYS,                                    \
      "Google Cloud project; \"\" = no Pub/Sub")                                                   \
    X(doc_pubsub, pubsub, subscription, pubsub.subscription, TEXT, STAYS,                          \
      "where requests are pulled from; \"\" = they are pushed to us")                              \
    X(doc_pubsub, pubsub, topic, pubsub.topic, TEXT, STAYS, "where results go")                    \
    X(doc_pubsub, pubsub, dead_topic, pubsub.dead_topic, TEXT, STAYS,                              \
      "where messages go that cannot be answered; \"\" = they are logged and forgotten")           \
    X(doc_pubsub, pubsub, credentials_file, pubsub.credentials_file, FILE_PATH, STAYS,             \
      "key of a service account (JSON); \"\" = the machine's own account")                         \
    X(doc_pubsub, pubsub, endpoint, pubsub.endpoint, URL, STAYS,                                   \
      "\"\" = Google's; the environment's PUBSUB_EMULATOR_HOST goes before")                       \
    X(doc_pubsub, pubsub, push_audience, pubsub.push_audience, TEXT, STAYS,                        \
      "audience of Google's token at POST /v1/pubsub/push; \"\" = nobody may push")                \
    X(doc_pubsub, pubsub, push_account, pubsub.push_account, TEXT, STAYS,                          \
      "e-mail address of the service account that pushes")                                         \
    X(doc_pubsub, pubsub, push_keys, pubsub.push_keys, URL, STAYS,                                 \
      "where the keys of Google's tokens are; \"\" = where Google has them")                       \
    X(doc_pubsub, pubsub, pull_messages, pubsub.pull_messages, PULL, STAYS,                        \
      "at most, of one pull")                                                                      \
    X(doc_pubsub, pubsub, pulls, pubsub.pulls, PULLS, STAYS, "under way at once")

#define CONFIG_KUBERNETES(X)                                                                       \
    X(doc_kubernetes, kubernetes, url, kubernetes.url, URL, STAYS,                                 \
      "API server; \"\" = as the kubeconfig says, else as a pod finds it")                         \
    X(doc_kubernetes, kubernetes, ca_file, kubernetes.ca_file, FILE_PATH, STAYS,                   \
      "PEM file that signs its certificate; \"\" = the service account's")                         \
    X(doc_kubernetes, kubernetes, token_file, kubernetes.token_file, FILE_PATH, STAYS,             \
      "token that we show it, read again when it changes; \"\" = the service account's")           \
    X(doc_kubernetes, kubernetes, kubeconfig, kubernetes.kubeconfig, FILE_PATH, STAYS,             \
      "file whose current context says all of this; what is said here goes before")

#define CONFIG_TIMEOUTS(X)                                                                         \
    CONFIG_TIMEOUT(X, ack_ms, "a chosen server's time to acknowledge")                             \
    CONFIG_TIMEOUT(X, ready_ms, "ACK to READY, where READY is required")                           \
    CONFIG_TIMEOUT(X, ticket_ms, "a whole ticket")                                                 \
    CONFIG_TIMEOUT(X, heartbeat_ms, "silence after which a server is Offline")                     \
    CONFIG_TIMEOUT(X, chat_ms, "silence after which a chat server is gone")                        \
    CONFIG_TIMEOUT(X, challenge_ms,                                                                \
                   "an old connection's time to answer a PING when another claims its identity")   \
    CONFIG_TIMEOUT(X, list_ms, "a returned server's time to list its matches")                     \
    CONFIG_TIMEOUT(X, lost_ms,                                                                     \
                   "how long a LOST match waits for its server, and a CANCEL is repeated")         \
    CONFIG_TIMEOUT(X, session_ms, "the longest a match may be open")                               \
    CONFIG_TIMEOUT(X, token_ms, "a match token's time to admit an account first")                  \
    CONFIG_TIMEOUT(X, keep_ms, "how long a finished ticket is kept")                               \
    CONFIG_TIMEOUT(X, forget_ms,                                                                   \
                   "an Offline server without sessions, or a chat server that is away without "    \
                   "tickets, is forgotten after this")                                             \
    CONFIG_TIMEOUT(X, cancel_repeat_ms, "an unacknowledged CANCEL is said again after this")       \
    CONFIG_TIMEOUT(X, backoff_first_ms,                                                            \
                   "a server that refused, timed out or dropped is passed over for this long, "    \
                   "doubling ...")                                                                 \
    CONFIG_TIMEOUT(X, backoff_max_ms, "... up to this, reset by its next success")                 \
    CONFIG_TIMEOUT(X, zero_report_ms,                                                              \
                   "matches older than this end when a server that cannot list them twice "        \
                   "reports none")                                                                 \
    CONFIG_TIMEOUT(X, host_ms, "silence after which a host gets nothing new")                      \
    CONFIG_TIMEOUT(                                                                                \
        X, host_lost_ms,                                                                           \
        "... after which the rooms on it are over; until then reservations stand still")           \
    CONFIG_TIMEOUT(X, place_ms, "a request for seats, from asking to the server's INITED")         \
    CONFIG_TIMEOUT(X, spawn_retry_ms,                                                              \
                   "a spawn that fails within this is tried once more on another host")            \
    CONFIG_TIMEOUT(                                                                                \
        X, host_backoff_ms,                                                                        \
        "a host that failed, or a version on it, is passed over for this long, doubling ...")      \
    CONFIG_TIMEOUT(X, host_backoff_max_ms, "... up to this, reset by its next success")            \
    CONFIG_TIMEOUT(X, loading_ms, "a lobby's time until all its players have loaded")              \
    CONFIG_TIMEOUT(X, player_gone_ms,                                                              \
                   "how long a player may be disconnected before his lobby is aborted")
#define CONFIG_TIMEOUT(X, key, meaning)                                                            \
    X(doc_timeouts, timeouts, key, core.timeouts.key, MS, RELOADS, meaning)

#define CONFIG_LIMITS(X)                                                                           \
    CONFIG_LIMIT(X, tickets_open, "requests above it are refused with \"Too many open requests\"") \
    CONFIG_LIMIT(X, tickets_kept, "above it the oldest finished ticket is forgotten")              \
    CONFIG_LIMIT(X, servers, "game servers above it are refused with \"Internal error\"")          \
    CONFIG_LIMIT(X, chat_servers, "chat servers above it are refused with \"Internal error\"")     \
    CONFIG_LIMIT(X, enrolments,                                                                    \
                 "enrolment tokens above it are refused with \"Too many open requests\"")          \
    CONFIG_LIMIT(X, audit_kept, "above it the oldest line of the audit is forgotten")              \
    CONFIG_LIMIT(X, hosts, "hosts above it are refused with \"Too many open requests\"")           \
    CONFIG_LIMIT(X, rooms, "rooms above it are refused with \"Too many open requests\"")           \
    CONFIG_LIMIT(X, bans, "above it the oldest ban that has expired makes room")                   \
    CONFIG_LIMIT(X, deployments,                                                                   \
                 "of one fleet; above it the oldest that is not in use is forgotten")              \
    CONFIG_LIMIT(                                                                                  \
        X, queued,                                                                                 \
        "allocations that wait in line; above it they fail with \"Too many open requests\"")       \
    CONFIG_LIMIT(X, lobbies,                                                                       \
                 "loading and started; above it they are refused with \"Too many open requests\"")
#define CONFIG_LIMIT(X, key, meaning)                                                              \
    X(doc_limits, limits, key, core.limits.key, COUNT, RELOADS, meaning)

/* The keys of an entry of `fleets` that have one value: F(key, who it is for, default and values,
 * meaning), for `muster config keys` and the schema; config_fleet.c judges them. The others are
 * lists. */
#define CONFIG_FLEET(F)                                                                            \
    F(provider, "all", "`chat`, `agent`, `agones`; `chat`",                                        \
      "who runs the servers: they come by themselves (`chat`), agents start one for each room "    \
      "(`agent`), or Kubernetes does (`agones`)")                                                  \
    F(ready_required, "chat", "`true`, `false`; `false`",                                          \
      "a match counts as allocated when its server has said READY, not at its ACK")                \
    F(ready_lobbies, "chat", "`true`, `false`; `true`", "the same for matches of lobbies")         \
    F(game, "agent", "1 to 63 of `A-Z a-z 0-9 . _ -`", "what players name in paths, with ...")     \
    F(server, "agent", "1 to 63 of `A-Z a-z 0-9 . _ -`",                                           \
      "... this; no two fleets have both alike")                                                   \
    F(other_regions, "agent or agones", "`true`, `false`; `false`",                                \
      "no place in the first region: the next nearest is taken. Not for requests with latencies, " \
      "nor for allocations that name a region")                                                    \
    F(binary, "agent", "1 to 255 bytes",                                                           \
      "the program; a relative path begins at the folder of the version's deployment")             \
    F(endpoint, "agent", "`path`, `uri`; `path`",                                                  \
      "how the program is told its socket: as a path, or as `ipc://` and the path")                \
    F(ports, "agent", "1 to 4; 1", "ports that a server gets")                                     \
    F(max_players, "agent or agones", "1 to 10000", "seats of a room")                             \
    F(server_settings, "agent", "a JSON object, at most 8191 bytes; `{}`",                         \
      "given to every server")                                                                     \
    F(spawn_timeout_s, "agent or agones", "1 to 3600 s; 30", "a server's time to say `inited`")    \
    F(reserve_s, "agent", "1 to 86400 s; 30", "a reservation's time to become a player")           \
    F(status_period_s, "agent", "1 to 3600 s; 10", "how often a server is asked whether it lives") \
    F(empty_timeout_s, "agent or agones", "1 to 604800 s; 300",                                    \
      "a room without a seat is ended after this")                                                 \
    F(max_session_s, "agent or agones", "1 to 604800 s; 21600", "the longest a room may be open")  \
    F(confirm, "agent or agones", "`joined`, `none`; `joined`, and `none` on agones",              \
      "when a seat counts as taken: as the game server says that its player joined, or as it is "  \
      "given")                                                                                     \
    F(fill, "agent or agones", "`pack`, `spread`; `pack`",                                         \
      "which room an allocation is placed in: the fullest with a free seat, or the emptiest")      \
    F(when_full, "agent or agones", "`queue`, `fail`; `queue`",                                    \
      "an allocation for which nothing is free and nothing can be started waits in line, or "      \
      "fails")                                                                                     \
    F(queue_timeout_s, "agent or agones", "1 to 86400 s; 120", "the longest it waits in line")     \
    F(token, "agent or agones", "`opaque`, `player-id`; `opaque`",                                 \
      "what a proxy knows a player by: a token of his seat, or the first 16 bytes of his id")
