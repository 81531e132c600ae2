/* What is there before anybody has a job for it: shims that wait, their homes, and the processes
 * that they have begun. None is ever lost or left over, whoever is killed when. */
#include "processes.h"

enum { SPARES = 4 };

static void one_that_was_just_being_started_is_taken_over(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    RUN_UNTIL(&w, count_homes_ahead(&w) == SPARES);
    for (int64_t server = 1; server <= 10; server++) {
        process_go(spawn(&w, server, "idle", NULL));
        close_agent(&w);
        open_agent(&w);
        struct process *p = processes_find(w.ps, server);
        assert_non_null(p);
        assert_true(process_was_adopted(p));
        RUN_UNTIL(&w, says(p, "ready"));
        RUN_UNTIL(&w, count_homes_ahead(&w) == SPARES);
    }
    assert_int_equal(processes_count(w.ps), 10);
    end(&w);
}

/* On a busy machine a shim may have to wait for its turn. It goes on when the next agent has asked
 * it, and later than a shim that is well would need. */
static void one_whose_shim_answers_late_is_taken_over(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    struct process *p = spawn(&w, 1, "idle", NULL);
    run_until_ready(&w, p);
    pid_t pid = process_pid(p);
    pid_t shim = parent_of(pid);
    close_agent(&w);
    kill(shim, SIGSTOP);
    pid_t helper = fork();
    if (helper == 0) {
        (void)poll(NULL, 0, 2500);
        _exit(kill(shim, SIGCONT) == 0 ? 0 : 1);
    }
    open_agent(&w);
    p = processes_find(w.ps, 1);
    assert_non_null(p);
    assert_int_equal(process_pid(p), pid);
    assert_int_equal(parent_of(pid), shim);
    assert_int_equal(process_write(p, STR("exit 42")), 0); /* through its shim alone */
    run_until_over(&w, p);
    assert_int_equal(process_ended(p)->exit_code, 42);
    end(&w);
}

static int kill_spare(pid_t pid)
{
    return is_spare(pid) && kill(pid, SIGKILL) == 0;
}

static int count_spare(pid_t pid)
{
    return is_spare(pid);
}

static void homes_of_spares_that_were_killed_are_cleared_away(void **state)
{
    (void)state;
    static struct world w;
    char left[128];
    int64_t last = 0;
    prepare(&w);
    open_loop(&w);
    snprintf(left, sizeof(left), "mkdir -p %s/agent/servers/spare-1-1", w.folder);
    assert_int_equal(system(left), 0);
    open_agent(&w);
    RUN_UNTIL(&w, access(left + strlen("mkdir -p "), F_OK) != 0);
    RUN_UNTIL(&w, count_homes_ahead(&w) == SPARES);
    (void)count_homes_up_to(&w, &last);
    assert_int_equal(each_child(kill_spare), SPARES);
    RUN_UNTIL(&w, count_homes_up_to(&w, &last) == 0); /* there may be new ones by then */
    struct process *p = spawn(&w, 1, "idle", NULL);
    RUN_UNTIL(&w, says(p, "ready"));
    RUN_UNTIL(&w, each_child(count_spare) == SPARES && count_homes_ahead(&w) == SPARES);
    end(&w);
}

/* The process that a shim which waits has begun, and that will be a game server; 0 = none. */
static pid_t begun_by(pid_t pid)
{
    pid_t children[CHILDREN_MAX];
    return is_spare(pid) && find_children(pid, children) == 1 ? children[0] : 0;
}

static int count_begun(pid_t pid)
{
    return begun_by(pid) > 0;
}

static int kill_begun(pid_t pid)
{
    return begun_by(pid) > 0 && kill(begun_by(pid), SIGKILL) == 0;
}

static void what_was_begun_too_early_is_begun_again(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    RUN_UNTIL(&w, each_child(count_begun) == SPARES);
    assert_int_equal(each_child(kill_begun), SPARES);
    RUN_UNTIL(&w, each_child(count_begun) == 0);
    assert_int_equal(each_child(count_spare), SPARES);
    for (int64_t server = 1; server <= SPARES; server++) {
        struct process *p = spawn(&w, server, "idle", NULL);
        RUN_UNTIL(&w, says(p, "ready"));
    }
    spawn(&w, 100, "exit", "3");
    struct process *p = processes_find(w.ps, 100);
    run_until_over(&w, p);
    assert_int_equal(process_ended(p)->exit_code, 3);
    end(&w);
}

/* And does not wait until the agent, who might give it a job, has heard of that. */
static void what_was_begun_ends_with_its_shim(void **state)
{
    (void)state;
    static struct world w;
    pid_t shims[CHILDREN_MAX];
    begin(&w);
    RUN_UNTIL(&w, each_child(count_begun) == SPARES);
    int n = find_children(getpid(), shims);
    assert_int_equal(n, SPARES);
    for (int i = 0; i < n; i++) {
        int begun = proc_pidfd_open(begun_by(shims[i]));
        assert_true(begun >= 0);
        kill(shims[i], SIGKILL);
        assert_true(proc_await(begun, proc_monotonic_ms() + PATIENCE_MS));
        close(begun);
    }
    end(&w);
}

/* How often a shim was started that writes a byte and ends. */
static int count_starts(const struct world *w)
{
    char path[96];
    struct stat st;
    snprintf(path, sizeof(path), "%s/starts", w->folder);
    return stat(path, &st) == 0 ? (int)st.st_size : 0;
}

/* As soon as one has ended, no other is started for a second. */
static void a_shim_that_cannot_live_is_not_started_all_the_time(void **state)
{
    (void)state;
    static struct world w;
    char folder[80], shim[96];
    pid_t children[CHILDREN_MAX];
    struct process_ops ops = {.over = on_over, .user = &w};
    prepare(&w);
    open_loop(&w);
    snprintf(folder, sizeof(folder), "%s/agent", w.folder);
    snprintf(shim, sizeof(shim), "%s/shim", w.folder);
    FILE *f = fopen(shim, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\nprintf x >>%s/starts\n", w.folder);
    fclose(f);
    assert_int_equal(chmod(shim, 0755), 0);
    int64_t since_ms = proc_monotonic_ms();
    assert_int_equal(processes_open(&w.loop, folder, shim, &w.limits, &ops, &w.ps, w.why), 0);
    RUN_UNTIL(&w, count_starts(&w) > 0 && find_children(getpid(), children) == 0);
    int starts = count_starts(&w);
    assert_true(starts <= SPARES);
    RUN_UNTIL(&w, count_starts(&w) > starts);
    assert_true(proc_monotonic_ms() - since_ms >= 1000);
    end(&w);
}

/* It runs, and its shim, which is stopped, has not said so. */
struct unsaid {
    struct process *process;
    pid_t shim;
    int pidfd;
};

static int stop_spare(pid_t pid)
{
    return is_spare(pid) && kill(pid, SIGSTOP) == 0;
}

static int go_on(pid_t pid)
{
    return kill(pid, SIGCONT) == 0;
}

/* Shims of the agent before, which had our pid, are slow to leave: ours have other homes. */
static void homes_are_named_anew_by_each_agent(void **state)
{
    (void)state;
    static struct world w;
    pid_t before[CHILDREN_MAX];
    begin(&w);
    RUN_UNTIL(&w, count_homes_ahead(&w) == SPARES && each_child(count_begun) == SPARES);
    int n = find_children(getpid(), before);
    assert_int_equal(n, SPARES);
    assert_int_equal(each_child(stop_spare), SPARES);
    close_agent(&w);
    open_agent(&w);
    RUN_UNTIL(&w, count_homes_ahead(&w) == 2 * SPARES);
    for (int i = 0; i < n; i++)
        assert_true(go_on(before[i]));
    RUN_UNTIL(&w, count_homes_ahead(&w) == SPARES);
    end(&w);
}

static struct unsaid start_unsaid(struct world *w)
{
    struct unsaid u = {.pidfd = -1};
    pid_t shims[CHILDREN_MAX], begun[CHILDREN_MAX];
    int64_t until_ms = proc_monotonic_ms() + PATIENCE_MS;
    RUN_UNTIL(w, each_child(count_begun) == SPARES);
    int n = find_children(getpid(), shims);
    for (int i = 0; i < n; i++)
        begun[i] = begun_by(shims[i]);
    assert_int_equal(each_child(stop_spare), SPARES);
    u.process = spawn(w, 1, "idle", NULL);
    process_go(u.process);
    while (u.pidfd < 0) {
        for (int i = 0; i < n; i++) {
            if (is_spare(begun[i]))
                continue;
            u.shim = shims[i];
            u.pidfd = proc_pidfd_open(begun[i]);
        }
        assert_true(proc_monotonic_ms() < until_ms);
    }
    return u;
}

static void a_shim_that_is_killed_before_its_word_leaves_nobody(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    struct unsaid u = start_unsaid(&w);
    assert_false(proc_is_over(u.pidfd));
    kill(u.shim, SIGKILL);
    run_until_over(&w, u.process);
    assert_true(proc_is_over(u.pidfd));
    assert_string_equal(process_why(u.process), "it was not started: its shim has ended");
    close(u.pidfd);
    each_child(go_on);
    end(&w);
}

static void who_is_to_end_before_the_word_of_its_shim_ends(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    struct unsaid u = start_unsaid(&w);
    process_end(u.process, 0);
    for (int i = 0; i < 10; i++)
        uv_run(&w.loop.uv, UV_RUN_ONCE);
    assert_int_equal(process_state(u.process), PROCESS_ENDING);
    each_child(go_on);
    run_until_over(&w, u.process);
    assert_true(proc_is_over(u.pidfd));
    close(u.pidfd);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_that_was_just_being_started_is_taken_over),
        TEST(one_whose_shim_answers_late_is_taken_over),
        TEST(homes_of_spares_that_were_killed_are_cleared_away),
        TEST(what_was_begun_too_early_is_begun_again),
        TEST(what_was_begun_ends_with_its_shim),
        TEST(a_shim_that_cannot_live_is_not_started_all_the_time),
        TEST(homes_are_named_anew_by_each_agent),
        TEST(a_shim_that_is_killed_before_its_word_leaves_nobody),
        TEST(who_is_to_end_before_the_word_of_its_shim_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
