/* `muster dump`: captured bytes of a chat port as one line per frame. Nothing says which way the
 * bytes went, so a frame is read as one to Muster and, where that fails, as one from Muster. */
#include "base/buf.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "wire/chat.h"
#include "wire/put.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_SIZE = 65536 };

struct dump {
    struct buf in;     /* bytes not printed yet */
    uint64_t consumed; /* bytes printed: the offset of in's first one */
    bool bad_payload;  /* of any frame so far */
    /* --hex */
    bool hex;
    int high; /* first digit of a pair, -1 = none */
    unsigned line;
};

/* Reads the payload as the given direction has it. NULL, or what is wrong with it. */
static const char *decode(const struct frame *frame, enum chat_direction direction,
                          struct chat_message *ret, size_t *ret_offset)
{
    enum chat_kind kind = chat_find(frame->code, direction);
    if (kind == CHAT_KINDS)
        return "unknown command";
    struct cursor c = cursor_of(frame->payload, frame->payload_len);
    chat_decode(&c, kind, ret);
    *ret_offset = FRAME_HEADER + c.error_offset;
    return c.error;
}

static void print_head(const struct dump *d, const struct frame *frame)
{
    printf("%08llx %5zu %04X ", (unsigned long long)d->consumed, frame->total - 2, frame->code);
}

/* False when the frame's payload is no message. A command nobody knows is not an error: peers are
 * upgraded at different times. */
static bool print_frame(const struct dump *d, const struct frame *frame)
{
    struct chat_message m;
    size_t offset = 0;
    const char *error = decode(frame, CHAT_TO_US, &m, &offset);
    if (error) {
        size_t other_offset = 0;
        const char *other = decode(frame, CHAT_FROM_US, &m, &other_offset);
        if (!other || chat_find(frame->code, CHAT_TO_US) == CHAT_KINDS) {
            error = other;
            offset = other_offset;
        }
    }
    print_head(d, frame);
    if (!error) {
        struct buf text = {0};
        chat_dump(&text, &m);
        printf("%.*s\n", (int)text.len, (const char *)text.data);
        buf_done(&text);
        return true;
    }
    bool known = chat_find(frame->code, CHAT_BOTH) != CHAT_KINDS;
    if (!known) {
        printf("unknown command, %zu bytes\n", frame->payload_len);
        return true;
    }
    printf("bad %s: %s at offset %08llx\n", chat_name(chat_find(frame->code, CHAT_BOTH)), error,
           (unsigned long long)(d->consumed + offset));
    return false;
}

/* Prints the whole frames there are. False where the bytes stop being frames; a payload that is no
 * message hides nothing that follows. */
static bool print_frames(struct dump *d)
{
    size_t at = 0;
    enum frame_result r = FRAME_PARTIAL;
    while (at < d->in.len) {
        struct frame frame;
        r = frame_next(d->in.data + at, d->in.len - at, FRAME_MAX, &frame);
        if (r != FRAME_OK)
            break;
        if (!print_frame(d, &frame))
            d->bad_payload = true;
        at += frame.total;
        d->consumed += frame.total;
    }
    buf_consume(&d->in, at);
    if (!frame_error(r))
        return true;
    printf("%08llx %s: %02x %02x\n", (unsigned long long)d->consumed, frame_error(r), d->in.data[0],
           d->in.data[1]);
    return false;
}

static int digit(int ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch = tolower(ch);
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* False at a character that is neither a digit nor blank. */
static bool take_hex(struct dump *d, const uint8_t *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n')
            d->line++;
        if (isspace(text[i]))
            continue;
        int value = digit(text[i]);
        if (value < 0) {
            fflush(stdout);
            fprintf(stderr, "muster dump: line %u: not a hex digit: 0x%02x\n", d->line, text[i]);
            return false;
        }
        if (d->high < 0) {
            d->high = value;
        } else {
            put_u8(&d->in, (uint8_t)(d->high << 4 | value));
            d->high = -1;
        }
    }
    return true;
}

/* Whatever is wrong with the text, the frames before it are printed. */
static bool take(struct dump *d, const uint8_t *bytes, size_t n)
{
    bool good = true;
    if (d->hex)
        good = take_hex(d, bytes, n);
    else
        buf_append(&d->in, bytes, n);
    return print_frames(d) && good;
}

static bool finish(const struct dump *d)
{
    if (d->high >= 0)
        printf("%08llx half a byte at the end\n", (unsigned long long)(d->consumed + d->in.len));
    if (d->in.len == 1)
        printf("%08llx truncated: 1 byte of a frame's length\n", (unsigned long long)d->consumed);
    else if (d->in.len > 1)
        printf("%08llx truncated: %zu of %d bytes of the last frame\n",
               (unsigned long long)d->consumed, d->in.len,
               2 + (d->in.data[0] | d->in.data[1] << 8));
    return d->in.len == 0 && d->high < 0;
}

static int dump_file(struct dump *d, FILE *f, const char *name)
{
    uint8_t *bytes = xmalloc(READ_SIZE);
    bool good = true;
    size_t n;
    while (good && (n = fread(bytes, 1, READ_SIZE, f)) > 0)
        good = take(d, bytes, n);
    free(bytes);
    if (ferror(f)) {
        fprintf(stderr, "muster dump: cannot read %s: %s\n", name, strerror(errno));
        return EXIT_UNREACHABLE;
    }
    return good && finish(d) && !d->bad_payload ? EXIT_DONE : EXIT_REFUSED;
}

static struct {
    bool hex;
    const char *name;
} set;

const struct arg dump_options[] = {
    {.name = "--hex",
     .kind = ARG_FLAG,
     .into = &set.hex,
     .help = "the file is text: pairs of hex digits, with any blanks between (xxd -p)"},
    {.name = "FILE", .kind = ARG_WORD, .into = &set.name},
    {0},
};

int dump_run(int argc, char **argv)
{
    if (!args_parse(argc, argv, dump_options))
        return EXIT_USAGE;
    const char *name = set.name;
    struct dump d = {.hex = set.hex, .high = -1, .line = 1};
    if (!name) {
        args_refuse(argv[0], "which file? '-' is standard input");
        return EXIT_USAGE;
    }
    FILE *f = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    if (!f) {
        fprintf(stderr, "muster dump: cannot open %s: %s\n", name, strerror(errno));
        return EXIT_UNREACHABLE;
    }
    int code = dump_file(&d, f, name);
    if (f != stdin)
        fclose(f);
    buf_done(&d.in);
    return code;
}
