/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of NCCL's protocols LL and LL128, into which a GPU looks while they arrive. Here a thread looks.
 * The last word of a line is a flag, the number of the message: whoever sees it finds the data before it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/rng.h"
#include "tests/kit/kit.h"
#include "tests/nccl/net.h"

enum {
    BUFFERS = 8, /* messages in turn; even ones have lines of LL, odd ones of LL128 */
    BUFFER_WORDS = 32768,
    LL_WORDS = 1, /* LL's line of 16 bytes is two of 4 bytes of data and 4 of flag */
    LL128_WORDS = 16,
    MESSAGES = 160,
    GROUP = 4,
    SPINS = 200,
    SAMPLES = 64,
    ENOUGH_LOOKS = 50,
};

struct scene {
    int version, group;
    int before; /* version of another user of the plugin; 0: none */
    bool hinted;
    unsigned drop_ppm;
};

struct buffer {
    pthread_mutex_t lock; /* who looks has it, and who begins or ends a message */
    uint64_t *words;
    unsigned message; /* 0: none is on its way */
    unsigned next;    /* line to look at: those before it were seen */
};

static unsigned line_words(unsigned message)
{
    return message % 2 ? LL128_WORDS : LL_WORDS;
}

static unsigned lines_of(unsigned message)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, message);
    return 1 + mrd_rng_below(&rng, BUFFER_WORDS / line_words(message));
}

static uint64_t data_of(unsigned message, unsigned word)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, (uint64_t)message << 32 | word);
    return mrd_rng_u64(&rng);
}

static void write_lines(uint64_t *words, unsigned message)
{
    unsigned width = line_words(message), n = lines_of(message) * width;

    for (unsigned i = 0; i < n; i++)
        words[i] = width == LL_WORDS        ? data_of(message, i) << 32 | message
                   : i % width == width - 1 ? message
                                            : data_of(message, i);
}

/* ----------------------------------------------------------------------------------- looking */

struct looker {
    struct buffer *buffers;
    atomic_bool stop;
    struct mrd_rng rng;
    _Atomic uint64_t part_looks; /* that found some lines, and not all */
};

/* Is the line's flag there? Then all of the line is. */
static bool line_is_here(const uint64_t *words, unsigned message, unsigned line)
{
    unsigned width = line_words(message), end = line * width + width - 1;
    uint64_t last = __atomic_load_n(&words[end], __ATOMIC_ACQUIRE);
    unsigned flag = width == LL_WORDS ? (uint32_t)last : (unsigned)last;

    if (flag != message) {
        if (flag > message || (flag && flag % BUFFERS != message % BUFFERS))
            rank_fail(__FILE__, __LINE__, "message %u, line %u: the flag is %llx", message, line,
                      (unsigned long long)last);
        return false;
    }
    for (unsigned i = line * width; i <= end; i++) {
        uint64_t word =
            width == LL_WORDS ? last >> 32 : __atomic_load_n(&words[i], __ATOMIC_RELAXED);
        uint64_t want = width == LL_WORDS ? (uint32_t)data_of(message, i)
                        : i == end        ? message
                                          : data_of(message, i);
        if (word != want)
            rank_fail(__FILE__, __LINE__,
                      "message %u of %u lines of %u bytes: line %u has its flag before its data",
                      message, lines_of(message), 8 * width, line);
    }
    return true;
}

static unsigned count_lines(const struct buffer *b)
{
    unsigned here = 0;

    for (unsigned i = 0; i < lines_of(b->message); i++)
        here += line_is_here(b->words, b->message, i);
    return here;
}

/* As a GPU does: each line once its flag is there, then the next one; and some at random places. */
static void look_at(struct looker *l, struct buffer *b)
{
    unsigned n = lines_of(b->message);

    for (unsigned i = 0; i < SPINS && b->next < n; i++) {
        while (b->next < n && line_is_here(b->words, b->message, b->next))
            b->next++;
        if (!b->next)
            break;
        l->part_looks += b->next < n;
    }
    for (unsigned i = 0; i < SAMPLES; i++)
        (void)line_is_here(b->words, b->message, mrd_rng_below(&l->rng, n));
}

static void *look(void *argument)
{
    struct looker *l = argument;

    for (unsigned i = 0; !atomic_load(&l->stop); i++) {
        struct buffer *b = &l->buffers[i % BUFFERS];

        pthread_mutex_lock(&b->lock);
        if (b->message)
            look_at(l, b);
        pthread_mutex_unlock(&b->lock);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------- ranks */

static void set_message(struct buffer *b, unsigned message)
{
    pthread_mutex_lock(&b->lock);
    if (b->message && count_lines(b) != lines_of(b->message))
        rank_fail(__FILE__, __LINE__, "message %u is done, but not all of it is here", b->message);
    b->message = message;
    b->next = 0;
    pthread_mutex_unlock(&b->lock);
}

/* As many receives in one call as the scene has in a group. NULL: not now. */
static void *post(struct net *net, void *comm, struct buffer *buffers, unsigned first,
                  const struct scene *scene, void *mhandle)
{
    void *data[GROUP], *mhandles[GROUP],
        *request = scene->hinted ? NCCL_NET_OPTIONAL_RECV_COMPLETION : NULL;
    size_t sizes[GROUP];
    int tags[GROUP];

    for (int i = 0; i < scene->group; i++) {
        unsigned message = first + (unsigned)i;

        data[i] = buffers[message % BUFFERS].words;
        sizes[i] = BUFFER_WORDS * sizeof(uint64_t);
        tags[i] = (int)(message % BUFFERS);
        mhandles[i] = mhandle;
        set_message(&buffers[message % BUFFERS], message);
    }
    NEED(net_receive(net, comm, scene->group, data, sizes, tags, mhandles, &request) ==
         ncclSuccess);
    return request;
}

/* Messages from `first` on. */
static void receive_lines(struct net *net, void *comm, const struct scene *scene,
                          struct buffer *buffers, unsigned first, void *mhandle)
{
    unsigned step = (unsigned)scene->group, posted = first, end = first + MESSAGES;
    void *request[BUFFERS];

    for (unsigned done = first; done < end; done += step) {
        for (; posted < end && posted < done + BUFFERS; posted += step)
            NEED(request[posted % BUFFERS] = post(net, comm, buffers, posted, scene, mhandle));
        net_wait(net, request[done % BUFFERS], (int[GROUP]){0});
        for (unsigned i = done; i < done + step; i++)
            set_message(&buffers[i % BUFFERS], 0);
    }
}

static void send_lines(struct net *net, void *comm, uint64_t *words, unsigned first, void *mhandle)
{
    void *request[BUFFERS] = {NULL};

    for (unsigned m = first; m < first + MESSAGES + BUFFERS; m++) {
        void **slot = &request[m % BUFFERS];
        uint64_t *at = words + m % BUFFERS * BUFFER_WORDS;

        if (*slot)
            net_wait(net, *slot, NULL);
        if (m >= first + MESSAGES)
            continue;
        write_lines(at, m);
        NEED(*slot = net_send_one(net, comm, at, lines_of(m) * line_words(m) * sizeof(*at),
                                  (int)(m % BUFFERS), mhandle));
    }
}

/* Until the looker, which may have had no processor, has seen enough. */
static void play(int rank, struct net *net, const struct scene *scene, void *comm, uint64_t *words,
                 void *mhandle)
{
    struct buffer buffers[BUFFERS];
    struct looker looker = {.buffers = buffers};
    bool more = true;
    pthread_t thread;

    for (int i = 0; i < BUFFERS; i++)
        buffers[i] = (struct buffer){PTHREAD_MUTEX_INITIALIZER, words + i * BUFFER_WORDS, 0, 0};
    if (rank)
        NEED(!pthread_create(&thread, NULL, look, &looker));
    for (unsigned first = 1; more; first += MESSAGES) {
        if (rank) {
            receive_lines(net, comm, scene, buffers, first, mhandle);
            more = atomic_load(&looker.part_looks) < ENOUGH_LOOKS;
            rank_tell(0, &more, sizeof(more));
        } else {
            send_lines(net, comm, words, first, mhandle);
            rank_hear(1, &more, sizeof(more));
        }
    }
    if (rank) {
        atomic_store(&looker.stop, true);
        pthread_join(thread, NULL);
    }
}

static void run_scene(int rank, const void *argument)
{
    const struct scene *scene = argument;
    const size_t bytes = BUFFERS * BUFFER_WORDS * sizeof(uint64_t);
    uint64_t *words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct net_link link;
    struct net net;
    char text[16];

    NEED(words != MAP_FAILED);
    snprintf(text, sizeof(text), "%u", scene->drop_ppm);
    (void)setenv("MRD_NCCL_DROP_PPM", text, 1);
    (void)setenv("MRD_NCCL_MAX_RECVS", "8", 1);
    (void)setenv("MRD_MTU", "1344", 1); /* an odd number of half lines of LL128 */
    if (scene->before)
        net_start(&(struct net){0}, scene->before);
    net_start(&net, scene->version);
    net_link(&net, !rank, &link, 1);
    void *comm = rank ? link.receive : link.send;
    void *mhandle = net_register(&net, comm, words, bytes);
    play(rank, &net, scene, comm, words, mhandle);
    NEED(net.dereg_mr(comm, mhandle) == ncclSuccess);
    net_unlink(&net, &link, 1);
    NEED(net_finalize(&net) == ncclSuccess);
}

static void run_lossy(struct scene scene)
{
    static const unsigned drop_ppm[] = {0, 10000, 50000};

    for (unsigned i = 0; i < sizeof(drop_ppm) / sizeof(*drop_ppm); i++) {
        scene.drop_ppm = drop_ppm[i];
        print_message("%u of a million packets dropped\n", scene.drop_ppm);
        ranks_run(2, run_scene, &scene);
    }
}

/* NCCL says which receives it looks into. */
TEST(nccl_lines__hinted)
{
    run_lossy((struct scene){.version = 11, .group = 1, .hinted = true});
}

/* By v8 it cannot say, so any may be one. */
TEST(nccl_lines__v8)
{
    run_lossy((struct scene){.version = 8, .group = 1});
}

/* Whoever else uses the plugin, and says so. */
TEST(nccl_lines__v8_beside_v11)
{
    run_lossy((struct scene){.version = 8, .group = 1, .before = 11});
}

/* Nor can it say of groups. */
TEST(nccl_lines__groups)
{
    run_lossy((struct scene){.version = 10, .group = GROUP});
}
