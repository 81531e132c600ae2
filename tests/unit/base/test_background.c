#include "base/background.h"

#include "lib/unit.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int policy_of_this_thread(void)
{
    int policy = -1;
    struct sched_param param;
    assert_int_equal(pthread_getschedparam(pthread_self(), &policy, &param), 0);
    return policy;
}

static void a_thread_goes_there_and_comes_back(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_true(background_can_end());
    assert_int_equal(policy_of_this_thread(), SCHED_OTHER);
    assert_true(background_set(pthread_self(), true));
    assert_int_equal(policy_of_this_thread(), SCHED_IDLE);
    assert_true(background_set(pthread_self(), false));
    assert_int_equal(policy_of_this_thread(), SCHED_OTHER);
}

enum { TOLD_RIGHTLY, TOLD_WRONGLY, NOT_NOBODY, LIMIT_NOT_RAISED };

/* Whether this process, as somebody without rights, is told rightly that there is a way back. */
static int ask_as_nobody(rlim_t nice_limit)
{
    const struct rlimit limit = {nice_limit, nice_limit};
    if (setrlimit(RLIMIT_NICE, &limit) != 0)
        return LIMIT_NOT_RAISED;
    if (setuid(65534) != 0)
        return NOT_NOBODY;
    bool right = background_can_end() == (nice_limit >= 20);
    return right && policy_of_this_thread() == SCHED_OTHER ? TOLD_RIGHTLY : TOLD_WRONGLY;
}

static void whoever_could_not_come_back_is_told_so(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    const rlim_t limits[] = {0, 19, 20, 40};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0)
            _exit(ask_as_nobody(limits[i]));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        /* In a container root may have no right to raise it. */
        if (limits[i] > 0 && WEXITSTATUS(status) == LIMIT_NOT_RAISED)
            continue;
        assert_int_equal(WEXITSTATUS(status), TOLD_RIGHTLY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_goes_there_and_comes_back),
        cmocka_unit_test(whoever_could_not_come_back_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
