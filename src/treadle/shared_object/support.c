/*
 * What every library that treadle exports has beside its programs: errors, the memory of results,
 * the threads, the variables, and what programs call. Tables and functions of the library follow.
 *
 * TREADLE_... are constants that the exporter puts before this text: they are those of treadle's
 * own runtime.
 */

enum { OK, INVALID, FAILED, NO_MEMORY };

/* ---- errors ---- */

static __thread char error_text[2048];

static int refuse(int status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(error_text, sizeof error_text, format, values);
    va_end(values);
    return status;
}

/* ---- arrays ---- */

/* A result of a call, as long as the call lasts. */
struct result {
    const char *name;
    void *given;     /* the caller's memory, or NULL */
    int64_t room;    /* elements that it has room for */
    int64_t *shape;
    int rank;
    int64_t size;    /* bytes of an element */
    void *made;      /* the memory in use: the caller's, or what this library allocated */
};

/* The number of elements of an array of `size` bytes each, or -1 where no memory has so many. */
static int64_t elements(const int64_t *shape, int rank, int64_t size)
{
    int64_t count = 1, bytes;
    for (int i = 0; i < rank; i++)
        if (shape[i] == 0)
            return 0;
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i], &count))
            return -1;
    return __builtin_mul_overflow(count, size, &bytes) ? -1 : count;
}

static const char *shape_text(char *text, size_t room, const int64_t *shape, int rank)
{
    size_t used = (size_t)snprintf(text, room, "[");
    for (int i = 0; i < rank && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, i ? ", %lld" : "%lld", (long long)shape[i]);
    if (used < room)
        snprintf(text + used, room - used, "]");
    return text;
}

/* Whether an argument may be used: it has the sizes `wanted`, and elements. */
static int check_argument(const char *name, const char *expected, const void *data,
                          const int64_t *shape, const int64_t *wanted, int rank, int64_t size)
{
    char text[256];
    for (int i = 0; i < rank; i++)
        if (shape[i] != wanted[i] || shape[i] < 0)
            return refuse(INVALID, "%s has the shape %s, and must be %s", name,
                          shape_text(text, sizeof text, shape, rank), expected);
    int64_t count = elements(shape, rank, size);
    if (count < 0)
        return refuse(INVALID, "%s has the shape %s: no memory has so many elements", name,
                      shape_text(text, sizeof text, shape, rank));
    if (count > 0 && data == NULL)
        return refuse(INVALID, "%s has no elements: its data is NULL", name);
    return OK;
}

/* Have memory for a result whose shape is known. */
static int take_room(struct result *result)
{
    char text[256];
    int64_t count = elements(result->shape, result->rank, result->size);
    if (count < 0)
        return refuse(INVALID, "%s would have the shape %s", result->name,
                      shape_text(text, sizeof text, result->shape, result->rank));
    if (result->given != NULL) {
        if (result->room < count)
            return refuse(INVALID, "%s has the shape %s, and there is room for %lld elements",
                          result->name,
                          shape_text(text, sizeof text, result->shape, result->rank),
                          (long long)result->room);
        result->made = result->given;
        return OK;
    }
    size_t bytes = (size_t)(count * result->size);
    result->made = malloc(bytes ? bytes : 1);
    if (result->made == NULL)
        return refuse(NO_MEMORY, "there is no memory for %s: %zu bytes", result->name, bytes);
    return OK;
}

static void give_back(struct result *results, int count)
{
    for (int i = 0; i < count; i++) {
        if (results[i].given == NULL)
            free(results[i].made);
        results[i].made = NULL;
    }
}

static inline int64_t word_of(const void *address)
{
    return (int64_t)(intptr_t)address;
}

/* Sizes are computed as Python does it. */
static inline int64_t floor_divide(int64_t a, int64_t b)
{
    return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t modulo(int64_t a, int64_t b)
{
    return b == 0 ? 0 : a - floor_divide(a, b) * b;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the processor ---- */

#if TREADLE_AMX
#include <sys/syscall.h>
#endif

static const char *missing; /* an instruction set that the processor lacks, or NULL */

static void look_at_processor(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
#define TREADLE_NEEDS(name) if (!__builtin_cpu_supports(name)) missing = name;
    TREADLE_INSTRUCTIONS
#if TREADLE_AMX
    /* ARCH_REQ_XCOMP_PERM: Linux lets those processes use the matrix registers that ask. */
    if (missing == NULL && syscall(SYS_arch_prctl, 0x1023, 18) != 0)
        missing = "amx-tile";
#endif
#endif
}

/* ---- programs ---- */

enum notice_kind { CHECK, MEMORY, RESULT };

/* What a program tells when it calls `callback`. */
struct notice {
    enum notice_kind kind;
    const char *text; /* a format for the words that it passes */
    int words;        /* how many these are */
    int number;       /* of a result */
};

struct program {
    int64_t (*run)(void **state, int64_t *frame);
    void **state;
    int reads, writes; /* whether it uses variables, and whether it assigns them */
    const struct notice *notices;
};

/* The results of the call that this thread is in; `told` is the status of a notice. */
static __thread struct result *results_of_call;
static __thread int told;

/* Called by programs: an error, or a result whose shape was found out. */
static int64_t take_notice(const struct notice *notice, const int64_t *words)
{
    if (notice->kind != RESULT) {
        long long a = notice->words > 0 ? words[0] : 0, b = notice->words > 1 ? words[1] : 0;
        told = refuse(notice->kind == MEMORY ? NO_MEMORY : FAILED, notice->text, a, b);
        return 1;
    }
    struct result *result = &results_of_call[notice->number];
    if (result->made != NULL && result->given == NULL)
        free(result->made);
    result->made = NULL;
    for (int i = 0; i < result->rank; i++)
        result->shape[i] = words[1 + i];
    told = take_room(result);
    if (told != OK)
        return 1;
    memcpy(result->made, (const void *)(intptr_t)words[0],
           (size_t)(elements(result->shape, result->rank, result->size) * result->size));
    return 0;
}

/* Python's signals: there are none. */
static int no_signals(void)
{
    return 0;
}

/* Those who read variables exclude those who write them. */
static pthread_rwlock_t variables_lock = PTHREAD_RWLOCK_INITIALIZER;

static int run(const struct program *program, int64_t *frame, struct result *results, int count)
{
    if (missing != NULL) {
        give_back(results, count);
        return refuse(FAILED, "this processor lacks %s, which the library needs", missing);
    }
    struct result *outer = results_of_call;
    results_of_call = results;
    told = OK;
    if (program->writes)
        pthread_rwlock_wrlock(&variables_lock);
    else if (program->reads)
        pthread_rwlock_rdlock(&variables_lock);
    int64_t status = program->run(program->state, frame);
    if (program->reads || program->writes)
        pthread_rwlock_unlock(&variables_lock);
    results_of_call = outer;
    if (status == TREADLE_DONE)
        return OK;
    give_back(results, count);
    switch (status) {
    case TREADLE_WRONG_SHAPE:
        return refuse(INVALID, "the sizes of the arguments do not fit together");
    case TREADLE_NO_MEMORY:
        return refuse(NO_MEMORY, "there is no memory for temporary arrays");
    default:
        return told != OK ? told : refuse(FAILED, "the program ended with status %lld",
                                          (long long)status);
    }
}

/* ---- variables ---- */

/* What programs know of a variable. */
struct cell {
    void *data;
    int64_t shared;
    void *array;
    int64_t readers, writer;
};

static inline int check_variable(int number, int count, size_t bytes, size_t wanted, const void *elements)
{
    if (number < 0 || number >= count)
        return refuse(INVALID, "there is no variable %d: there are %d", number, count);
    if (bytes != wanted)
        return refuse(INVALID, "variable %d has %zu bytes, not %zu", number, wanted, bytes);
    return elements == NULL && wanted ? refuse(INVALID, "the elements are NULL") : OK;
}

/* ---- the pool of threads (treadle's runtime/cpu/pool_code.py) ---- */

void TREADLE_POOL(set_pool)(void *pool);
void TREADLE_POOL(init_slot)(void *slot);
void TREADLE_POOL(work)(void *slot, int64_t spins);
void TREADLE_POOL(quit_slot)(void *slot);
void TREADLE_POOL(parallel)(void *task, void *record, int64_t most, void *call);
void TREADLE_POOL(launch)(void *kernel, void *buffers, void *dims, int64_t units, int64_t grain,
                          void *scratch, int64_t stride, int64_t slice, void *call);
int64_t TREADLE_POOL(python)(void **state, void *record, int64_t number, void *words, void *frame);

static unsigned char pool[TREADLE_POOL_HEAD + TREADLE_MOST_THREADS * TREADLE_POOL_SLOT]
    __attribute__((aligned(64)));
static pthread_t workers[TREADLE_MOST_THREADS];
static int started; /* how many there are */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

static void *slot_of(int worker)
{
    return pool + TREADLE_POOL_HEAD + (size_t)worker * TREADLE_POOL_SLOT;
}

/* The second word of the pool is the number of its workers. */
static void share_with(int64_t count)
{
    __atomic_store_n((int64_t *)(void *)(pool + 8), count, __ATOMIC_SEQ_CST);
}

/* A word of the pool says how often a caller pauses before it lets another thread have its core. */
static void set_patience(void)
{
    int64_t pauses = TREADLE_PATIENCE;
    memcpy(pool + TREADLE_POOL_PATIENCE, &pauses, sizeof pauses);
}

static void *begin_work(void *slot)
{
    TREADLE_POOL(work)(slot, TREADLE_SPINS);
    return NULL;
}

static int set_threads(int count)
{
    if (count == 0)
        count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (count < 1)
        return refuse(INVALID, "%d threads", count);
    if (count > TREADLE_MOST_THREADS)
        count = TREADLE_MOST_THREADS;
    int status = OK;
    pthread_mutex_lock(&pool_lock);
    while (started < count - 1) {
        TREADLE_POOL(init_slot)(slot_of(started));
        int error = pthread_create(&workers[started], NULL, begin_work, slot_of(started));
        if (error != 0) {
            status = refuse(NO_MEMORY, "no thread can be started: %s", strerror(error));
            break;
        }
        started++;
    }
    if (status == OK)
        share_with(count - 1);
    pthread_mutex_unlock(&pool_lock);
    return status;
}

/* In a child process there are no workers. */
static void after_fork(void)
{
    memset(pool, 0, sizeof pool);
    set_patience();
    started = 0;
    pthread_mutex_init(&pool_lock, NULL);
    pthread_rwlock_init(&variables_lock, NULL);
}

__attribute__((constructor)) static void begin(void)
{
    look_at_processor();
    set_patience();
    TREADLE_POOL(set_pool)(pool);
    pthread_atfork(NULL, NULL, after_fork);
}

__attribute__((destructor)) static void end(void)
{
    share_with(0);
    for (int i = 0; i < started; i++)
        TREADLE_POOL(quit_slot)(slot_of(i));
    for (int i = 0; i < started; i++)
        pthread_join(workers[i], NULL);
    started = 0;
}
