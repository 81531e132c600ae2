#include "cli/cli.h"

#include <signal.h>

/* A file that may not grow any more is a write that failed, see base/full.h. */
int main(int argc, char **argv)
{
    (void)signal(SIGXFSZ, SIG_IGN);
    return cli_main(argc, argv);
}
