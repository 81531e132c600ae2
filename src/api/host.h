/* The agents' door: the shapes of what agents send and are answered (docs/agent-protocol.md). Its
 * handlers are declared in call.h. */
#pragma once

#include "api/shape.h"

extern const struct shape host_server_shape;
extern const struct shape host_beat_shape;
extern const struct shape host_beat_answer_shape;
extern const struct shape agent_event_shape;
extern const struct shape agent_events_shape;
extern const struct shape agent_refusal_shape;
extern const struct shape agent_answer_shape;
extern const struct shape agent_answers_shape;
