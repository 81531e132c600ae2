/* Processes, with real ones: what a game server is given, how it ends, and that neither our death
 * nor that of its shim touches it. */
#include "processes.h"

/* ── what it is given ──────────────────────────────────────────────────────────────────────── */

static void argv_environment_and_folder_are_exact(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    setenv("SECRET_OF_THE_AGENT", "1", 1);
    const char *const arguments[] = {"show", "a b", "", "$HOME;`x`", NULL};
    const char *const env[] = {"A=b c", "room_settings={\"map\":\"\\n\"}", NULL};
    struct process_spec spec = spec_of(&w, 12, arguments);
    spec.folder = w.folder;
    spec.binary = "./game";
    spec.env = env;
    spec.n_ports = 2;
    spec.endpoint_uri = true;
    struct process *p;
    assert_int_equal(processes_spawn(w.ps, &spec, &p, w.why), 0);
    int n;
    const uint16_t *ports = process_ports(p, &n);
    assert_int_equal(n, 2);
    char text[512];
    snprintf(text, sizeof(text),
             "argv ./game\nargv ipc://%s\nargv %d,%d\nargv show\nargv a b\nargv \nargv "
             "$HOME;`x`\nenv A=b c\nenv room_settings={\"map\":\"\\n\"}\ncwd %s\n",
             process_endpoint(p), ports[0], ports[1], w.folder);
    run_until_over(&w, p);
    ASSERT_SAYS(p, text);
    ASSERT_SAYS(p, "limit core=0\n");
    ASSERT_SAYS(p, "leader 1");
    ASSERT_SAYS(p, "fd 0\nfd 1\nfd 2\nstatus"); /* and no other */
    ASSERT_SAYS(p, "NoNewPrivs:\t1");
    ASSERT_SAYS(p, "CapPrm:\t0000000000000000");
    ASSERT_SAYS(p, "CapEff:\t0000000000000000");
    ASSERT_SAYS(p, "CapInh:\t0000000000000000");
    ASSERT_SAYS(p, "CapAmb:\t0000000000000000");
    ASSERT_SAYS(p, "SigBlk:\t0000000000000000");
    ASSERT_SAYS(p, "SigIgn:\t0000000000001000"); /* SIGPIPE alone */
    assert_true(strlen(process_endpoint(p)) < 108);
    assert_int_equal(process_ended(p)->exit_code, 0);
    assert_string_equal(process_why(p), "");
    end(&w);
}

static void own_uid_and_limits(void **state)
{
    (void)state;
    static struct world w;
    if (geteuid() != 0)
        skip();
    prepare(&w);
    w.limits.uid_first = UID_FIRST;
    w.limits.files = 77;
    w.limits.processes = 33;
    w.limits.file_bytes = 1 << 20;
    open_loop(&w);
    open_agent(&w);
    struct process *idle = spawn(&w, 1, "idle", NULL);
    struct process *p = spawn(&w, 2, "show", NULL);
    run_until_ready(&w, idle);
    run_until_over(&w, p);
    assert_int_equal(sched_getscheduler(process_pid(idle)), SCHED_OTHER);
    assert_int_equal(sched_getscheduler(parent_of(process_pid(idle))), SCHED_BATCH);
    char text[200];
    snprintf(text, sizeof(text), "status Uid:\t%d\t%d\t%d\t%d\nstatus Gid:\t%d", UID_FIRST + 1,
             UID_FIRST + 1, UID_FIRST + 1, UID_FIRST + 1, UID_FIRST + 1);
    ASSERT_SAYS(p, text);
    ASSERT_SAYS(p, "status Groups:\t \n");
    ASSERT_SAYS(p, "CapBnd:\t0000000000000000");
    ASSERT_SAYS(p, "limit files=77\nlimit processes=33\nlimit core=0\nlimit file=1048576\n");
    snprintf(text, sizeof(text), "cwd %s/agent/scratch/1\n", w.folder);
    ASSERT_SAYS(p, text);
    assert_null(strstr(processes_missing(w.ps), "root"));
    end(&w);
}

/* The endpoint is bound by root; its game server may connect, another uid may not. */
static void endpoint_is_for_one_uid(void **state)
{
    (void)state;
    static struct world w;
    if (geteuid() != 0)
        skip();
    prepare(&w);
    w.limits.uid_first = UID_FIRST;
    open_loop(&w);
    open_agent(&w);
    struct process *p = spawn(&w, 1, "idle", NULL);
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    strcpy(here.sun_path, process_endpoint(p));
    int fd = process_take_listener(p);
    assert_true(fd >= 0);
    assert_int_equal(process_take_listener(p), -1);
    run_until_ready(&w, p);
    for (uid_t uid = UID_FIRST; uid < UID_FIRST + 2; uid++) {
        pid_t pid = fork();
        if (pid == 0) {
            int s = socket(AF_UNIX, SOCK_STREAM, 0);
            if (setgid(uid) < 0 || setuid(uid) < 0)
                _exit(2);
            _exit(connect(s, (struct sockaddr *)&here, sizeof(here)) == 0 ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), uid == UID_FIRST ? 0 : 1);
    }
    close(fd);
    end(&w);
}

static void what_is_missing_is_said(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    assert_non_null(strstr(processes_missing(w.ps), geteuid() == 0 ? "run as root" : "not root"));
    assert_non_null(strstr(processes_missing(w.ps), "memory is not limited"));
    end(&w);
}

static void what_cannot_be_started_is_said(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    const char *const none[] = {NULL};
    struct process_spec spec = spec_of(&w, 5, none);
    struct process *p;
    spec.binary = "/no/such/server";
    assert_int_equal(processes_spawn(w.ps, &spec, &p, w.why), ERR_SPAWN_FAILED);
    assert_string_equal(w.why, "cannot execute /no/such/server: No such file or directory");
    spec.binary = "/etc/passwd";
    assert_int_equal(processes_spawn(w.ps, &spec, &p, w.why), ERR_SPAWN_FAILED);
    assert_string_equal(w.why, "cannot execute /etc/passwd: it is not executable");

    char *large = xmalloc(200 * 1024);
    memset(large, 'x', 200 * 1024 - 1);
    large[200 * 1024 - 1] = '\0';
    memcpy(large, "room_settings=", 14);
    const char *const env[] = {large, NULL};
    spec.binary = w.game;
    spec.env = env;
    assert_int_equal(processes_spawn(w.ps, &spec, &p, w.why), ERR_TOO_LARGE);
    assert_non_null(strstr(w.why, "room_settings"));
    free(large);
    assert_int_equal(processes_count(w.ps), 0);

    /* What only exec finds out. */
    char script[96];
    snprintf(script, sizeof(script), "%s/script", w.folder);
    int fd = open(script, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    assert_int_equal(write(fd, "#!/no/such/sh\n", 14), 14);
    close(fd);
    spec.env = no_env;
    spec.binary = script;
    assert_int_equal(processes_spawn(w.ps, &spec, &p, w.why), 0);
    run_until_over(&w, p);
    assert_int_equal(process_ended(p)->exit_code, 127);
    assert_non_null(strstr(process_why(p), "cannot execute"));
    assert_non_null(strstr(process_why(p), "No such file or directory"));
    end(&w);
}

/* ── how it ends ───────────────────────────────────────────────────────────────────────────── */

static void exit_code_and_signal(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    int64_t begun_ms = clock_monotonic_ms();
    struct process *a = spawn(&w, 1, "exit", "7");
    struct process *b = spawn(&w, 2, "idle", NULL);
    assert_ptr_equal(spawn(&w, 1, "exit", "8"), a);
    run_until_ready(&w, b);
    process_inited(b);
    assert_int_equal(process_state(b), PROCESS_RUNNING);
    process_end(b, 60000);
    assert_int_equal(process_state(b), PROCESS_ENDING);
    RUN_UNTIL(&w, w.over == 2);
    assert_int_equal(process_ended(a)->exit_code, 7);
    assert_int_equal(process_ended(a)->exit_signal, 0);
    assert_int_equal(process_ended(b)->exit_signal, SIGTERM);
    assert_true(process_ended(a)->peak_memory > 64 * 1024);
    assert_in_range(process_ended(b)->run_ms, 0, clock_monotonic_ms() - begun_ms);
    process_forget(a);
    struct process_spec spec = spec_of(&w, 1, no_env);
    assert_int_equal(processes_spawn(w.ps, &spec, &a, w.why), ERR_ALREADY_OVER);
    end(&w);
}

static void who_ignores_sigterm_is_killed(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    struct process *p = spawn(&w, 1, "stubborn", NULL);
    run_until_ready(&w, p);
    int64_t asked_ms = clock_monotonic_ms();
    process_end(p, 300);
    run_until_over(&w, p);
    assert_int_equal(process_ended(p)->exit_signal, SIGKILL);
    assert_true(clock_monotonic_ms() - asked_ms >= 300);
    end(&w);
}

static void ended_before_it_began(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    struct process *a = spawn(&w, 1, "idle", NULL);
    struct process *b = spawn(&w, 2, "idle", NULL);
    process_end(a, 0);
    process_end(b, 60000);
    RUN_UNTIL(&w, w.over == 2);
    assert_string_equal(process_why(a), "it was not started: it was to end before");
    assert_int_equal(process_ended(b)->exit_signal, SIGTERM);
    end(&w);
}

/* A daemon in a session of its own would hold its port for ever. */
static void what_it_leaves_behind_is_ended(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    struct process *p = spawn(&w, 1, "leave", NULL);
    run_until_over(&w, p);
    assert_int_equal(process_ended(p)->exit_code, 0);
    struct buf b = {.data = NULL};
    process_tail(p, 20, &b);
    buf_append(&b, "", 1);
    int pid = 0;
    assert_int_equal(sscanf((char *)b.data, "left %d", &pid), 1);
    buf_done(&b);
    assert_true(kill(pid, 0) < 0 && errno == ESRCH);
    end(&w);
}

/* ── its log and its input ─────────────────────────────────────────────────────────────────── */

static int64_t size_of_logs(const struct world *w, int64_t server, int *ret_files)
{
    char path[160];
    struct stat st;
    int64_t sum = 0;
    *ret_files = 0;
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "%s/agent/servers/%" PRId64 "/log%s%.*d", w->folder, server,
                 i ? "." : "", i ? 1 : 0, i);
        if (stat(path, &st) < 0)
            continue;
        sum += st.st_size;
        ++*ret_files;
    }
    return sum;
}

/* The most memory it ever had, in KiB. */
static long peak_kib(pid_t pid)
{
    char path[64];
    char line[128];
    long kib = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *f = fopen(path, "r");
    while (f && kib < 0 && fgets(line, sizeof(line), f))
        (void)sscanf(line, "VmHWM: %ld", &kib);
    if (f)
        fclose(f);
    return kib;
}

/* The only shim of ours that has a job; its game server may have ended already. */
static pid_t only_shim(void)
{
    pid_t children[CHILDREN_MAX];
    pid_t found = 0;
    int n = find_children(getpid(), children);
    for (int i = 0; i < n; i++)
        if (!is_spare(children[i]))
            found = children[i];
    return found;
}

static void flood_is_cut_and_blocks_nobody(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    long before_kib = peak_kib(getpid());
    struct process *p = spawn(&w, 1, "flood", "1024");
    while (process_state(p) != PROCESS_OVER) /* a GiB, which takes a busy machine its time */
        uv_run(&w.loop.uv, UV_RUN_ONCE);
    assert_int_equal(process_ended(p)->exit_code, 0);
    assert_in_range(peak_kib(only_shim()), 1, 8 * 1024);
    assert_in_range(peak_kib(getpid()), 1, before_kib + 4 * 1024);
    int files;
    int64_t size = size_of_logs(&w, 1, &files);
    assert_true(size >= 24 << 20 && size <= 32 << 20);
    assert_int_equal(files, 4);
    struct buf b = {.data = NULL};
    process_tail(p, 1, &b);
    assert_int_equal(b.len, strlen("the last line\n"));
    assert_memory_equal(b.data, "the last line\n", b.len);
    buf_done(&b);
    assert_true(says(p, "bytes of output dropped]"));
    end(&w);
}

static void lines_reach_its_input(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    struct process *p = spawn(&w, 1, "idle", NULL);
    run_until_ready(&w, p);
    assert_int_equal(process_write(p, STR("hello there")), 0);
    RUN_UNTIL(&w, says(p, "heard hello there\n"));
    char large[5000] = "";
    assert_int_equal(process_write(p, (struct str){large, sizeof(large)}), ERR_IO);
    assert_int_equal(process_write(p, STR("exit 3")), 0);
    run_until_over(&w, p);
    assert_int_equal(process_ended(p)->exit_code, 3);
    assert_int_equal(process_write(p, STR("too late")), ERR_IO);
    end(&w);
}

/* ── they outlive us ───────────────────────────────────────────────────────────────────────── */

enum { TEN = 10 };

static void await_ready(struct world *w, int64_t first, int64_t last)
{
    for (int64_t i = first; i <= last; i++)
        run_until_ready(w, processes_find(w->ps, i));
}

static void ten_outlive_us_and_one_ended_meanwhile(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    pid_t pids[TEN + 1];
    const char *const env[] = {"login_access_token=x", NULL};
    const char *const arguments[] = {"idle", NULL};
    for (int64_t i = 1; i <= TEN; i++) {
        struct process *p;
        struct process_spec spec = spec_of(&w, i, arguments);
        spec.env = env;
        spec.status_period_ms = 1234;
        assert_int_equal(processes_spawn(w.ps, &spec, &p, w.why), 0);
    }
    await_ready(&w, 1, TEN);
    for (int64_t i = 1; i <= TEN; i++) {
        process_inited(processes_find(w.ps, i));
        pids[i] = process_pid(processes_find(w.ps, i));
    }
    int n;
    uint16_t port = process_ports(processes_find(w.ps, 4), &n)[0];
    char endpoint[108];
    strcpy(endpoint, process_endpoint(processes_find(w.ps, 4)));
    assert_int_equal(process_write(processes_find(w.ps, 7), STR("exit 42")), 0);
    close_agent(&w);

    int pidfd = proc_pidfd_open(pids[7]);
    /* The shims that have waited for a job end with us, and a signal of that may come meanwhile. */
    assert_true(pidfd < 0 || proc_await(pidfd, proc_monotonic_ms() + PATIENCE_MS));
    close(pidfd);
    assert_int_equal(w.over, 0);

    open_agent(&w);
    assert_int_equal(processes_count(w.ps), TEN);
    RUN_UNTIL(&w, w.over == 1);
    assert_int_equal(w.last_over, 7);
    assert_int_equal(process_ended(processes_find(w.ps, 7))->exit_code, 42);
    for (int64_t i = 1; i <= TEN; i++) {
        struct process *p = processes_find(w.ps, i);
        assert_true(process_was_adopted(p));
        assert_int_equal(process_pid(p), pids[i]);
        if (i != 7)
            assert_int_equal(process_state(p), PROCESS_RUNNING);
    }
    struct process *p = processes_find(w.ps, 4);
    assert_int_equal(process_ports(p, &n)[0], port);
    assert_string_equal(process_endpoint(p), endpoint);
    assert_int_equal(process_session(p), 1004);
    assert_int_equal(process_spec(p)->status_period_ms, 1234);
    assert_string_equal(process_spec(p)->env[0], "login_access_token=x");
    assert_string_equal(process_spec(p)->arguments[0], "idle");
    assert_int_equal(process_write(p, STR("still there?")), 0);
    RUN_UNTIL(&w, says(p, "heard still there?\n"));
    end(&w);
}

/* Two agents on one folder would fight over the shims. */
static void a_folder_has_one_agent(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    struct processes *second;
    char folder[80];
    struct process_ops ops = {.over = on_over, .user = &w};
    snprintf(folder, sizeof(folder), "%s/agent", w.folder);
    assert_int_equal(processes_open(&w.loop, folder, MUSTER_SHIM, &w.limits, &ops, &second, w.why),
                     ERR_LOCKED);
    end(&w);
}

/* In a process of its own, which is killed without a chance to do anything. */
static void run_an_agent_until_killed(struct world *w, int ready_fd)
{
    open_loop(w);
    open_agent(w);
    for (int64_t i = 1; i <= TEN; i++)
        spawn(w, i, "idle", NULL);
    await_ready(w, 1, TEN);
    process_end(processes_find(w->ps, 3), 1000000); /* it goes at once */
    RUN_UNTIL(w, w->over == 1);
    if (write(ready_fd, "x", 1) == 1)
        loop_run(&w->loop);
    _exit(1);
}

static void a_killed_agent_is_replaced(void **state)
{
    (void)state;
    static struct world w;
    prepare(&w);
    int ready[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* the orphans are ours, so that we can count them */
    pid_t agent = fork();
    if (agent == 0)
        run_an_agent_until_killed(&w, ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    kill(agent, SIGKILL);
    assert_int_equal(waitpid(agent, NULL, 0), agent);

    open_loop(&w);
    open_agent(&w);
    assert_int_equal(processes_count(w.ps), TEN);
    RUN_UNTIL(&w, w.over == 1); /* told again: nobody had taken it */
    assert_int_equal(w.last_over, 3);
    assert_int_equal(process_ended(processes_find(w.ps, 3))->exit_signal, SIGTERM);
    for (int64_t i = 1; i <= TEN; i++)
        assert_int_equal(process_state(processes_find(w.ps, i)),
                         i == 3 ? PROCESS_OVER : PROCESS_STARTING);
    end(&w);
}

/* ── and their shims ───────────────────────────────────────────────────────────────────────── */

static void a_killed_shim_is_replaced(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    struct process *p = spawn(&w, 1, "idle", NULL);
    run_until_ready(&w, p);
    pid_t pid = process_pid(p);
    pid_t shim = parent_of(pid);
    assert_true(shim != getpid());
    kill(shim, SIGKILL);
    RUN_UNTIL(&w, parent_of(pid) == getpid());
    assert_int_equal(process_write(p, STR("one")), 0);
    RUN_UNTIL(&w, says(p, "heard one\n")); /* the log is written again */
    assert_int_equal(process_pid(p), pid);
    assert_int_equal(process_write(p, STR("exit 9")), 0);
    run_until_over(&w, p);
    assert_int_equal(process_ended(p)->exit_code, 9);
    end(&w);
}

/* The new shim is not its parent, and we were away when it ended. Kernels before 6.15 cannot tell
 * how then; that it ended is told in any case. */
static void a_replaced_shim_tells_the_end_too(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    struct process *p = spawn(&w, 1, "idle", NULL);
    run_until_ready(&w, p);
    pid_t pid = process_pid(p);
    kill(parent_of(pid), SIGKILL);
    RUN_UNTIL(&w, parent_of(pid) == getpid());
    assert_int_equal(process_write(p, STR("one")), 0);
    RUN_UNTIL(&w, says(p, "heard one\n"));
    assert_int_equal(process_write(p, STR("exit 9")), 0);
    close_agent(&w);
    assert_int_equal(waitpid(pid, NULL, 0), pid); /* as init would */
    open_agent(&w);
    p = processes_find(w.ps, 1);
    assert_non_null(p);
    run_until_over(&w, p);
    int code = process_ended(p)->exit_code;
    assert_true(code == 9 || code == -1);
    end(&w);
}

/* Agent and shim are both killed; only the record is left. */
static void kill_agent_and_shim(struct world *w, pid_t *ret_pid)
{
    struct process *p = spawn(w, 1, "wait", NULL); /* it would not like the end of its input */
    run_until_ready(w, p);
    *ret_pid = process_pid(p);
    pid_t shim = parent_of(*ret_pid);
    close_agent(w);
    kill(shim, SIGKILL);
    assert_int_equal(waitpid(shim, NULL, 0), shim);
}

static void without_agent_and_shim_it_is_found_again(void **state)
{
    (void)state;
    static struct world w;
    pid_t pid;
    begin(&w);
    kill_agent_and_shim(&w, &pid);
    open_agent(&w);
    struct process *p = processes_find(w.ps, 1);
    assert_non_null(p);
    assert_true(process_was_adopted(p));
    assert_int_equal(process_pid(p), pid);
    uv_run(&w.loop.uv, UV_RUN_NOWAIT);
    assert_int_equal(process_state(p), PROCESS_STARTING);
    process_end(p, 0);
    run_until_over(&w, p);
    assert_int_equal(process_ended(p)->exit_signal, SIGKILL);
    end(&w);
}

static void forge_record(const struct world *w, pid_t pid, uint64_t start_ticks)
{
    char path[160];
    struct shim_state record;
    snprintf(path, sizeof(path), "%s/agent/servers/1/record", w->folder);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &record, sizeof(record), 0), sizeof(record));
    record.pid = pid;
    record.start_ticks = start_ticks;
    assert_int_equal(pwrite(fd, &record, sizeof(record), 0), sizeof(record));
    close(fd);
}

/* Its pid was given to somebody else. */
static void a_foreign_pid_is_never_signalled(void **state)
{
    (void)state;
    static struct world w;
    pid_t pid;
    begin(&w);
    kill_agent_and_shim(&w, &pid);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    pid_t stranger = fork();
    if (stranger == 0)
        for (;;)
            pause();
    forge_record(&w, stranger, proc_start_ticks(stranger) - 1);

    open_agent(&w);
    struct process *p = processes_find(w.ps, 1);
    process_end(p, 0);
    run_until_over(&w, p);
    assert_int_equal(process_ended(p)->exit_code, -1);
    assert_string_equal(process_why(p), "it ended while nobody watched it");
    process_end(p, 0);
    assert_int_equal(waitpid(stranger, NULL, WNOHANG), 0);
    kill(stranger, SIGKILL);
    end(&w);
}

/* ── ports and places ──────────────────────────────────────────────────────────────────────── */

static void a_port_is_given_again_only_when_forgotten(void **state)
{
    (void)state;
    static struct world w;
    prepare(&w);
    w.limits.port_last = w.limits.port_first;
    w.limits.slots = 2; /* it is the port that is wanting */
    open_loop(&w);
    open_agent(&w);
    struct process *p = spawn(&w, 1, "idle", NULL);
    struct process *q;
    struct process_spec spec = spec_of(&w, 2, no_env);
    assert_int_equal(processes_spawn(w.ps, &spec, &q, w.why), ERR_NO_PLACE);
    process_end(p, 0);
    assert_int_equal(processes_spawn(w.ps, &spec, &q, w.why), ERR_NO_PLACE);
    run_until_over(&w, p);
    assert_int_equal(processes_spawn(w.ps, &spec, &q, w.why), ERR_NO_PLACE);
    process_forget(p);
    assert_int_equal(processes_spawn(w.ps, &spec, &q, w.why), 0);
    int n;
    assert_int_equal(process_ports(q, &n)[0], w.limits.port_first);
    end(&w);
}

static int occupy(int type, uint16_t port)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
    if (type == SOCK_STREAM)
        assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void ports_of_others_are_not_given(void **state)
{
    (void)state;
    static struct world w;
    begin(&w);
    int tcp = occupy(SOCK_STREAM, w.limits.port_first);
    int udp = occupy(SOCK_DGRAM, (uint16_t)(w.limits.port_first + 1));
    struct process *p = spawn(&w, 1, "idle", NULL);
    int n;
    assert_int_equal(process_ports(p, &n)[0], w.limits.port_first + 2);
    close(tcp);
    close(udp);
    end(&w);
}

static void places_are_counted(void **state)
{
    (void)state;
    static struct world w;
    prepare(&w);
    w.limits.slots = 1;
    open_loop(&w);
    open_agent(&w);
    spawn(&w, 1, "idle", NULL);
    struct process *q;
    struct process_spec spec = spec_of(&w, 2, no_env);
    assert_int_equal(processes_spawn(w.ps, &spec, &q, w.why), ERR_NO_PLACE);
    assert_string_equal(w.why, "all 1 places of this host are taken");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(argv_environment_and_folder_are_exact),
        TEST(own_uid_and_limits),
        TEST(endpoint_is_for_one_uid),
        TEST(what_is_missing_is_said),
        TEST(what_cannot_be_started_is_said),
        TEST(exit_code_and_signal),
        TEST(who_ignores_sigterm_is_killed),
        TEST(ended_before_it_began),
        TEST(what_it_leaves_behind_is_ended),
        TEST(flood_is_cut_and_blocks_nobody),
        TEST(lines_reach_its_input),
        TEST(ten_outlive_us_and_one_ended_meanwhile),
        TEST(a_folder_has_one_agent),
        TEST(a_killed_agent_is_replaced),
        TEST(a_killed_shim_is_replaced),
        TEST(a_replaced_shim_tells_the_end_too),
        TEST(without_agent_and_shim_it_is_found_again),
        TEST(a_foreign_pid_is_never_signalled),
        TEST(a_port_is_given_again_only_when_forgotten),
        TEST(ports_of_others_are_not_given),
        TEST(places_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
