#include "cli/brokers.h"

const struct nats_config *brokers_nats(struct brokers *b, const struct config *config)
{
    const struct config_nats *from = &config->nats;
    if (from->n_urls == 0)
        return NULL;
    b->nats = (struct nats_config){
        .n_urls = from->n_urls,
        .credentials_file = from->credentials_file,
        .user = from->user,
        .password = from->password,
        .token = from->token,
        .ca_file = from->ca_file,
        .request_subject = from->request_subject,
        .result_subject = from->result_subject,
        .dead_subject = from->dead_subject,
        .stream = from->stream,
        .durable = from->durable,
        .max_deliver = from->max_deliver,
        .ack_wait_ms = from->ack_wait_ms,
    };
    for (size_t i = 0; i < from->n_urls; i++)
        b->nats.urls[i] = from->urls[i];
    return &b->nats;
}

const struct pubsub_config *brokers_pubsub(struct brokers *b, const struct config *config)
{
    const struct config_pubsub *from = &config->pubsub;
    if (from->project[0] == '\0')
        return NULL;
    b->pubsub = (struct pubsub_config){
        .project = from->project,
        .subscription = from->subscription,
        .topic = from->topic,
        .dead_topic = from->dead_topic,
        .credentials_file = from->credentials_file,
        .endpoint = from->endpoint,
        .push_audience = from->push_audience,
        .push_account = from->push_account,
        .push_keys = from->push_keys,
        .pull_messages = from->pull_messages,
        .pulls = from->pulls,
    };
    return &b->pubsub;
}
