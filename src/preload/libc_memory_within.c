/* Nodes, chunks and tables that the C library links into structures of its caller: they are
 * allocated on the heap during the call. These functions free all their other allocations before
 * they return. */
#include "preload/libc_memory.h"

/* Until the end of the block, the C library allocates on behalf of our caller. */
static inline bool begin(bool program)
{
	bool was = vv_alloc_on_behalf;

	vv_alloc_on_behalf = program;
	return was;
}

static inline void end(bool *was)
{
	vv_alloc_on_behalf = *was;
}

#define ON_BEHALF() __attribute__((cleanup(end), unused)) bool was = begin(FOR_PROGRAM())
#define WITHIN(type, name, params, args)                                                                                                         \
	type name params                                                                                                                         \
	{                                                                                                                                        \
		ON_BEHALF();                                                                                                                     \
		return THEIRS(name) args;                                                                                                        \
	}

/* ---- trees: the program's comparison may call any function ----------------------------------- */

static __thread int (*order)(const void *, const void *) __attribute__((tls_model("initial-exec")));

static int compare(const void *a, const void *b)
{
	int (*fn)(const void *, const void *) = order;
	bool was = begin(false);
	int rc = fn(a, b);

	end(&was);
	order = fn;
	return rc;
}

void *tsearch(const void *key, void **root, int (*fn)(const void *, const void *))
{
	ON_BEHALF();

	order = fn;
	return THEIRS(tsearch)(key, root, compare);
}

/* ---- tables, sets, vectors of strings -------------------------------------------------------- */

WITHIN(int, hcreate_r, (size_t n, struct hsearch_data *table), (n, table))
WITHIN(cpu_set_t *, __sched_cpualloc, (size_t n), (n))
WITHIN(error_t, argz_create, (char *const words[], char **z, size_t *n), (words, z, n))
WITHIN(error_t, argz_create_sep, (const char *s, int by, char **z, size_t *n), (s, by, z, n))
WITHIN(error_t, argz_add, (char **z, size_t *n, const char *s), (z, n, s))
WITHIN(error_t, argz_add_sep, (char **z, size_t *n, const char *s, int by), (z, n, s, by))
WITHIN(error_t, argz_append, (char **z, size_t *n, const char *more, size_t n_more), (z, n, more, n_more))
WITHIN(error_t, argz_insert, (char **z, size_t *n, char *before, const char *s), (z, n, before, s))
WITHIN(error_t, argz_replace, (char **z, size_t *n, const char *s, const char *by, unsigned *count), (z, n, s, by, count))
WITHIN(error_t, envz_add, (char **z, size_t *n, const char *name, const char *value), (z, n, name, value))
WITHIN(error_t, envz_merge, (char **z, size_t *n, const char *more, size_t n_more, int replace), (z, n, more, n_more, replace))

/* ---- obstacks: their chunks come from a function of the program, usually malloc -------------- */

WITHIN(int, _obstack_begin, (struct obstack *o, int n, int align, void *(*get)(long), void (*give)(void *)), (o, n, align, get, give))
WITHIN(int, _obstack_begin_1, (struct obstack *o, int n, int align, void *(*get)(void *, long), void (*give)(void *, void *), void *arg),
       (o, n, align, get, give, arg))

void _obstack_newchunk(struct obstack *o, int n)
{
	ON_BEHALF();
	THEIRS(_obstack_newchunk)(o, n);
}

/* The first use of a locale's characters loads tables, which belong to the C library. */
static void load_characters(void)
{
	btowc(0xff);
}

__attribute__((format(printf, 2, 0))) static int print(struct obstack *o, const char *fmt, va_list ap, bool program)
{
	bool was;
	int n;

	load_characters();
	was = begin(program);
	n = THEIRS(obstack_vprintf)(o, fmt, ap);
	end(&was);
	return n;
}

int obstack_vprintf(struct obstack *o, const char *fmt, va_list ap)
{
	return print(o, fmt, ap, FOR_PROGRAM());
}

int __obstack_vprintf_chk(struct obstack *o, int flag, const char *fmt, va_list ap)
{
	(void)flag;
	return print(o, fmt, ap, FOR_PROGRAM());
}

int obstack_printf(struct obstack *o, const char *fmt, ...)
{
	bool program = FOR_PROGRAM();
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = print(o, fmt, ap, program);
	va_end(ap);
	return n;
}

int __obstack_printf_chk(struct obstack *o, int flag, const char *fmt, ...)
{
	bool program = FOR_PROGRAM();
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, fmt);
	n = print(o, fmt, ap, program);
	va_end(ap);
	return n;
}

/* ---- regular expressions, which grow during use ---------------------------------------------- */

#define MATCHING(type, name, params, args)                                                                                                       \
	type name params                                                                                                                         \
	{                                                                                                                                        \
		load_characters();                                                                                                               \
		ON_BEHALF();                                                                                                                     \
		return THEIRS(name) args;                                                                                                        \
	}

MATCHING(int, regcomp, (regex_t *re, const char *text, int flags), (re, text, flags))
MATCHING(int, regexec, (const regex_t *re, const char *s, size_t n, regmatch_t m[], int flags), (re, s, n, m, flags))
MATCHING(const char *, re_compile_pattern, (const char *text, size_t n, struct re_pattern_buffer *re), (text, n, re))
MATCHING(int, re_compile_fastmap, (struct re_pattern_buffer *re), (re))
MATCHING(regoff_t, re_search, (struct re_pattern_buffer *re, const char *s, regoff_t n, regoff_t from, regoff_t range, struct re_registers *m),
	 (re, s, n, from, range, m))
MATCHING(regoff_t, re_search_2, (struct re_pattern_buffer *re, const char *a, regoff_t n_a, const char *b, regoff_t n_b, regoff_t from, regoff_t range,
				 struct re_registers *m, regoff_t stop), (re, a, n_a, b, n_b, from, range, m, stop))
MATCHING(regoff_t, re_match, (struct re_pattern_buffer *re, const char *s, regoff_t n, regoff_t from, struct re_registers *m), (re, s, n, from, m))
MATCHING(regoff_t, re_match_2, (struct re_pattern_buffer *re, const char *a, regoff_t n_a, const char *b, regoff_t n_b, regoff_t from,
				struct re_registers *m, regoff_t stop), (re, a, n_a, b, n_b, from, m, stop))

/* ---- actions of posix_spawn ------------------------------------------------------------------ */

WITHIN(int, posix_spawn_file_actions_addopen, (posix_spawn_file_actions_t *a, int fd, const char *path, int flags, mode_t mode), (a, fd, path, flags, mode))
WITHIN(int, posix_spawn_file_actions_addclose, (posix_spawn_file_actions_t *a, int fd), (a, fd))
WITHIN(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t *a, int fd, int to), (a, fd, to))
#if __GLIBC_PREREQ(2, 29)
WITHIN(int, posix_spawn_file_actions_addchdir_np, (posix_spawn_file_actions_t *a, const char *path), (a, path))
WITHIN(int, posix_spawn_file_actions_addfchdir_np, (posix_spawn_file_actions_t *a, int fd), (a, fd))
#endif
#if __GLIBC_PREREQ(2, 34)
WITHIN(int, posix_spawn_file_actions_addclosefrom_np, (posix_spawn_file_actions_t *a, int from), (a, from))
#endif
#if __GLIBC_PREREQ(2, 35)
WITHIN(int, posix_spawn_file_actions_addtcsetpgrp_np, (posix_spawn_file_actions_t *a, int fd), (a, fd))
#endif
