/* Intrusive doubly linked list: the link lives in the object, the owner holds the head. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *prev;
    struct link *next;
};

struct list {
    struct link head;
};

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Safe against removal of the current object. */
#define LIST_EACH(list_, var_, type_, member_)                                                     \
    for (struct link *var_##_link = (list_)->head.next, *var_##_next = var_##_link->next;          \
         var_##_link != &(list_)->head;                                                            \
         var_##_link = var_##_next, var_##_next = var_##_link->next)                               \
        for (type_ *var_ = container_of(var_##_link, type_, member_), *var_##_once = var_;         \
             var_##_once; var_##_once = NULL)

static inline void list_init(struct list *l)
{
    l->head.prev = l->head.next = &l->head;
}

static inline bool list_empty(const struct list *l)
{
    return l->head.next == &l->head;
}

/* A zeroed link is in no list. */
static inline bool link_in_list(const struct link *n)
{
    return n->next != NULL;
}

/* next is in a list, or is the head of one. */
static inline void list_insert_before(struct link *next, struct link *n)
{
    n->prev = next->prev;
    n->next = next;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): n may have been in it before. */
    next->prev->next = n;
    next->prev = n;
}

static inline void list_append(struct list *l, struct link *n)
{
    list_insert_before(&l->head, n);
}

/* Appends all of `from`, in order; it is empty afterwards. */
static inline void list_move_all(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->head.next->prev = to->head.prev;
    to->head.prev->next = from->head.next;
    from->head.prev->next = &to->head;
    to->head.prev = from->head.prev;
    list_init(from);
}

static inline void list_remove(struct link *n)
{
    if (!n->next)
        return;
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->prev = n->next = NULL;
}

static inline struct link *list_first(const struct list *l)
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it cannot see that a removed link is gone. */
    return list_empty(l) ? NULL : l->head.next;
}

static inline struct link *list_last(const struct list *l)
{
    return list_empty(l) ? NULL : l->head.prev;
}
