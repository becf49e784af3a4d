/* Memory that the C library allocates for its caller to free is part of the caller's state. Most of
 * it is moved to the heap when the C library returns (libc_memory.c, libc_memory_scan.c,
 * libc_memory_stream.c). Some of it is linked into a structure of the caller, such as a tree or a
 * compiled expression. Then the C library allocates on the heap during the call
 * (libc_memory_within.c). */
#ifndef VV_PRELOAD_LIBC_MEMORY_H
#define VV_PRELOAD_LIBC_MEMORY_H

/* Both scandir and scandir64 are defined here: the headers must not rename one to the other, nor
 * define either inline. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

/* exports the functions of these headers */
#pragma GCC visibility push(default)
#include <argz.h>
#include <dirent.h>
#include <envz.h>
#include <execinfo.h>
#include <glob.h>
#include <malloc.h>
#include <obstack.h>
#define _REGEX_NELTS(n) /* arrays as parameters are pointers */
#include <regex.h>
#include <sched.h>
#include <search.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include <wordexp.h>

/* called by programs that are built with -D_FORTIFY_SOURCE */
int __asprintf_chk(char **out, int flag, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int __vasprintf_chk(char **out, int flag, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));
int __obstack_printf_chk(struct obstack *o, int flag, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int __obstack_vprintf_chk(struct obstack *o, int flag, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));
char *__realpath_chk(const char *path, char *buf, size_t room);
char *__strdup(const char *s);
char *__strndup(const char *s, size_t n);
ssize_t __getdelim(char **line, size_t *room, int end, FILE *f);
#pragma GCC visibility pop

#include "preload/alloc.h"
#include "preload/libc_memory_names.h"

enum vv_libc_memory_id {
#define VV_LIBC_MEMORY_ID(name) VV_LIBC_MEMORY_##name,
	VV_LIBC_MEMORY_NAMES(VV_LIBC_MEMORY_ID)
#undef VV_LIBC_MEMORY_ID
	VV_LIBC_MEMORY_COUNT
};

extern _Atomic(void *) vv_libc_memory_found[VV_LIBC_MEMORY_COUNT] __attribute__((visibility("hidden")));
void *vv_libc_memory_find(enum vv_libc_memory_id id);

/* Returns the C library's own function. */
static inline void *vv_libc_memory_real(enum vv_libc_memory_id id)
{
	void *f = atomic_load_explicit(&vv_libc_memory_found[id], memory_order_relaxed);

	return __builtin_expect(f != NULL, 1) ? f : vv_libc_memory_find(id);
}

#define THEIRS(name) ((__typeof__(name) *)vv_libc_memory_real(VV_LIBC_MEMORY_##name))

/* Moves up to n bytes that the C library has allocated to the program's heap. Without memory for
 * that, or if they are in the heap already, returns the same address. */
void *vv_libc_memory_move(void *theirs, size_t n);

#endif
