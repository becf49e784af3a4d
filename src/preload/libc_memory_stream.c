/* Streams and memory. A stream that writes into memory leaves its result to the program when it is
 * closed. A program may also lend a buffer to a stream. A restart would restore that buffer under a
 * stream of the new run. So the stream gets a buffer of the C library instead, as C allows. */
#include "preload/libc_memory.h"
#include <pthread.h>

struct libc_memory_stream {
	struct libc_memory_stream *next;
	FILE *f;
	void *buffer;  /* replaces the program's buffer */
	void **result; /* its output of *n characters of `size` bytes; NULL: not a memory stream */
	size_t *n, size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The first one; read without the lock to see whether there is any. */
static _Atomic(struct libc_memory_stream *) streams;

static void begin_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void end_fork(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(begin_fork, end_fork, end_fork);
}

static bool add(struct libc_memory_stream s)
{
	struct libc_memory_stream *own = __libc_malloc(sizeof(*own));

	if (!own)
		return false;
	pthread_mutex_lock(&lock);
	s.next = atomic_load(&streams);
	*own = s;
	atomic_store(&streams, own);
	pthread_mutex_unlock(&lock);
	return true;
}

/* Removes all entries of the stream from the list and returns them. */
static struct libc_memory_stream *take(const FILE *f)
{
	struct libc_memory_stream *kept = NULL, *taken = NULL, *next;

	if (!atomic_load(&streams))
		return NULL;
	pthread_mutex_lock(&lock);
	for (struct libc_memory_stream *s = atomic_load(&streams); s; s = next) {
		struct libc_memory_stream **to = s->f == f ? &taken : &kept;

		next = s->next;
		s->next = *to;
		*to = s;
	}
	atomic_store(&streams, kept);
	pthread_mutex_unlock(&lock);
	return taken;
}

/* Moves the results after the stream was closed. */
static void settle(struct libc_memory_stream *s)
{
	while (s) {
		struct libc_memory_stream *next = s->next;

		if (s->result)
			*s->result = vv_libc_memory_move(*s->result, (*s->n + 1) * s->size);
		__libc_free(s->buffer);
		__libc_free(s);
		s = next;
	}
}

int fclose(FILE *f)
{
	struct libc_memory_stream *s = take(f);
	int rc = THEIRS(fclose)(f);

	if (s && vv_heap_prepare_thread())
		settle(s);
	return rc;
}

FILE *open_memstream(char **p, size_t *n)
{
	bool program = FOR_PROGRAM();
	FILE *f = THEIRS(open_memstream)(p, n);

	if (f && program)
		add((struct libc_memory_stream){ .f = f, .result = (void **)p, .n = n, .size = sizeof(**p) });
	return f;
}

FILE *open_wmemstream(wchar_t **p, size_t *n)
{
	bool program = FOR_PROGRAM();
	FILE *f = THEIRS(open_wmemstream)(p, n);

	if (f && program)
		add((struct libc_memory_stream){ .f = f, .result = (void **)p, .n = n, .size = sizeof(**p) });
	return f;
}

/* Returns the buffer to use instead of the program's. Without memory for it, returns NULL, and the
 * stream allocates its own. */
static char *instead(FILE *f, char *buffer, size_t n, bool program)
{
	char *own;

	if (!buffer || !program)
		return buffer;
	own = __libc_malloc(n ? n : 1);
	if (own && add((struct libc_memory_stream){ .f = f, .buffer = own }))
		return own;
	__libc_free(own);
	return NULL;
}

int setvbuf(FILE *f, char *buffer, int how, size_t n)
{
	return THEIRS(setvbuf)(f, instead(f, buffer, n, FOR_PROGRAM()), how, n);
}

void setbuffer(FILE *f, char *buffer, size_t n)
{
	THEIRS(setvbuf)(f, instead(f, buffer, n, FOR_PROGRAM()), buffer ? _IOFBF : _IONBF, n);
}

void setbuf(FILE *f, char *buffer)
{
	THEIRS(setvbuf)(f, instead(f, buffer, BUFSIZ, FOR_PROGRAM()), buffer ? _IOFBF : _IONBF, BUFSIZ);
}
