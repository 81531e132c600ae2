/* `muster man 1|5`: the manual pages muster(1) and muster.yaml(5) in roff, made of the tables of
 * verbs, options and keys from which --help and `config keys` are made. */
#include "cli/config_rows.h"
#include "cli/help.h"
#include "cli/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *set_page;

const struct arg man_options[] = {
    {.name = "PAGE", .kind = ARG_WORD, .into = &set_page},
    {0},
};

/* ── roff ──────────────────────────────────────────────────────────────────────────────────── */

/* Text that is filled. What would command roff is escaped: backslashes everywhere, a point or a
 * quote where a line begins. Lines stay lines. A hyphen is one that can be copied. */
static void put_text(FILE *to, const char *text)
{
    bool line_start = true;
    bool literal = false;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", to);
        line_start = *text == '\n';
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else if (*text == '`')
            fputs((literal = !literal) ? "\\fB" : "\\fR", to);
        else
            fputc(*text, to);
    }
}

/* A macro with one argument, in quotes. */
static void put_macro(FILE *to, const char *macro, const char *text)
{
    fprintf(to, "%s \"", macro);
    for (const char *at = text; *at; at++)
        fputs(*at == '"'    ? "\\(dq"
              : *at == '\\' ? "\\e"
              : *at == '-'  ? "\\-"
                            : (char[]){*at, 0},
              to);
    fputs("\"\n", to);
}

static void put_paragraph(FILE *to, const char *text)
{
    fputs(".PP\n", to);
    put_text(to, text);
    fputc('\n', to);
}

/* Lines as they are, set off. */
static void put_lines(FILE *to, const char *lines)
{
    fputs(".PP\n.RS 4\n.nf\n", to);
    put_text(to, lines);
    fputs(".fi\n.RE\n", to);
}

static void put_tagged(FILE *to, const char *tag, const char *text)
{
    fputs(".TP\n", to);
    put_macro(to, ".B", tag);
    put_text(to, text);
    fputc('\n', to);
}

static void put_head(FILE *to, const char *name, const char *section, const char *about)
{
    /* No date: the same tables give the same page. */
    fprintf(to, ".TH %s %s \"\" \"Muster %s\" \"Muster\"\n", name, section, MUSTER_VERSION);
    fprintf(to, ".SH NAME\n%s\n", about);
}

/* ── muster(1) ─────────────────────────────────────────────────────────────────────────────── */

static void put_option(FILE *to, const struct arg *arg)
{
    char tag[128];
    char about[ARGS_ABOUT_MAX];
    char letter[] = {'-', arg->letter, ',', ' ', '\0'};
    if (arg->kind == ARG_TITLE)
        put_paragraph(to, arg->name);
    if (!arg->help)
        return;
    snprintf(tag, sizeof(tag), "%s%s%s%s", arg->letter ? letter : "", arg->name,
             arg->value ? " " : "", arg->value ? arg->value : "");
    put_tagged(to, tag, args_about(arg, about));
}

static void put_options(FILE *to, const struct arg *table)
{
    for (; table->name; table++)
        put_option(to, table);
}

/* What help prints goes through a buffer, since it is escaped here. */
static void put_about(FILE *to, const struct command *c)
{
    char *text = NULL;
    size_t size = 0;
    FILE *lines = open_memstream(&text, &size);
    if (!lines)
        abort();
    help_about(lines, c);
    fclose(lines);
    put_text(to, text);
    free(text);
}

static void put_verb(FILE *to, const struct command *c)
{
    char title[160];
    struct ask ask;
    const struct arg *tables[HELP_TABLES_MAX + 1];
    snprintf(title, sizeof(title), "muster %s%s%s", c->name, c->synopsis && *c->synopsis ? " " : "",
             c->synopsis ? c->synopsis : "");
    put_macro(to, ".SS", title);
    put_about(to, c);
    help_tables(c, &ask, tables);
    for (size_t i = 0; tables[i]; i++) {
        if (tables[i] != remote_options)
            put_options(to, tables[i]);
    }
    if (help_is_remote(c))
        put_paragraph(to, "And the options of WHICH MUSTER IS ASKED.");
    if (c->exit) {
        fputs(".PP\nExit: ", to);
        put_text(to, c->exit);
        fputc('\n', to);
    }
    if (c->example)
        put_lines(to, c->example);
}

static void put_verbs(FILE *to)
{
    static const char *const sections[COMMAND_GROUPS] = {
        [GROUP_RUN] = "VERBS THAT RUN SOMETHING",
        [GROUP_LOOK] = "VERBS THAT LOOK",
        [GROUP_CHANGE] = "VERBS THAT CHANGE SOMETHING",
        [GROUP_TOOLS] = "TOOLS",
    };
    for (int group = 0; group < COMMAND_GROUPS; group++) {
        put_macro(to, ".SH", sections[group]);
        for (const struct command *c = commands; c->name; c++) {
            if ((int)c->group == group)
                put_verb(to, c);
        }
    }
}

static void put_environment(FILE *to)
{
    fputs(".SH ENVIRONMENT\n", to);
    put_tagged(to, "MUSTER_URL", "Which Muster is asked, where --url does not say it.");
    put_tagged(to, "MUSTER_TOKEN",
               "The access token that is shown, where --token does not say it; also that of\n"
               "muster agent.");
    put_tagged(to, "MUSTER_ENROL_TOKEN",
               "The enrolment token of muster game-server and muster allocate.");
    put_tagged(to, "MUSTER_PLAYER_TOKEN", "The access token of muster player-client.");
    put_tagged(to, "NO_COLOR", "When it is not empty there are no colours.");
}

static void put_page_1(FILE *to)
{
    put_head(to, "MUSTER", "1", "muster \\- gets players onto the right game server");
    fputs(".SH SYNOPSIS\n.B muster\n.I VERB\n.RI [ OPTIONS ]\n.SH DESCRIPTION\n", to);
    put_text(to,
             "Muster keeps a fleet of game servers alive, knows how loaded each one is, gives a\n"
             "match or a player a place on the best of them, proves to the game server that the\n"
             "player may enter, and never sells one place twice.\n");
    put_paragraph(to,
                  "`muster serve` is the control plane, and `muster agent` runs on each host and\n"
                  "starts game servers there. `muster dev` is all of it on one machine, to try it\n"
                  "out. Every other verb looks, changes something, or is a tool; most of them ask\n"
                  "a running Muster over its HTTP API. `muster VERB --help` says what is said\n"
                  "here about one of them.");
    put_verbs(to);
    fputs(".SH WHICH MUSTER IS ASKED\n", to);
    put_text(to, "Verbs that ask a running Muster take these too.\n");
    put_options(to, remote_options);
    put_environment(to);
    fputs(".SH EXIT STATUS\n", to);
    put_text(to, "0 done, 1 refused (the sentence says why), 2 wrong usage, 3 Muster cannot be\n"
                 "reached. Verbs of which it is something else say so.\n");
    fputs(".SH SEE ALSO\n.BR muster.yaml (5)\n", to);
}

/* ── muster.yaml(5) ────────────────────────────────────────────────────────────────────────── */

static void put_key(void *user, const struct config_row *key)
{
    FILE *to = user;
    char text[1024];
    snprintf(text, sizeof(text), "%s.", key->meaning);
    put_tagged(to, key->name, text);
    fputs(".br\n", to);
    if (key->provider)
        snprintf(text, sizeof(text), "Provider: %s. Values; default: %s.", key->provider,
                 key->values);
    else
        snprintf(text, sizeof(text), "Default: %s. Values: %s. %s.", key->fallback, key->values,
                 key->reloads ? "A reload takes it" : "Needs a restart");
    put_text(to, text);
    fputc('\n', to);
}

static void put_page_5(FILE *to)
{
    put_head(to, "MUSTER.YAML", "5", "muster.yaml \\- configuration of Muster");
    fputs(".SH DESCRIPTION\n", to);
    put_text(to, "`muster serve --config FILE` reads this file. The order is: defaults, then the\n"
                 "file, then the command line. Everything has a default, so every section is\n"
                 "optional.\n");
    put_paragraph(to, "A key `timeouts.ack_ms` is the key `ack_ms` of the section `timeouts`.\n"
                      "Numbers are digits alone: no unit, sign or fraction. A key that nobody\n"
                      "knows is refused with the nearest one there is.");
    put_paragraph(to, "`muster config check FILE` says whether a file is fine, or what is wrong\n"
                      "with it. SIGHUP lets a running Muster read the file again; what is wrong\n"
                      "then changes nothing, and of what needs a restart it is said.");
    put_lines(to, "fleets:\n"
                  "  - {name: shooter, provider: chat}\n"
                  "tokens:\n"
                  "  - {token: \"change-me\", role: server, fleet: shooter}\n"
                  "timeouts:\n"
                  "  ack_ms: 5000\n");
    fputs(".SH KEYS\n", to);
    config_each_row(put_key, to);
    fputs(".SH KEYS OF A FLEET\n", to);
    put_text(to, "What an entry of `fleets` may have.\n");
    config_each_fleet_row(put_key, to);
    fputs(".SH SEE ALSO\n.BR muster (1)\n", to);
}

/* ── the verb ──────────────────────────────────────────────────────────────────────────────── */

int man_run(int argc, char **argv)
{
    if (!args_parse(argc, argv, man_options))
        return EXIT_USAGE;
    bool is_1 = set_page && strcmp(set_page, "1") == 0;
    bool is_5 = set_page && strcmp(set_page, "5") == 0;
    if (!is_1 && !is_5) {
        (void)args_refuse(argv[0], "PAGE is 1 or 5, not '%s'", set_page ? set_page : "");
        return EXIT_USAGE;
    }
    if (is_1)
        put_page_1(stdout);
    else
        put_page_5(stdout);
    return EXIT_DONE;
}
