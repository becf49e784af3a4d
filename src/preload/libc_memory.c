#include "preload/libc_memory.h"
#include "preload/wrap/wrap.h"
#include <dlfcn.h>

static const char *const names[VV_LIBC_MEMORY_COUNT] = {
#define NAME(name) [VV_LIBC_MEMORY_##name] = #name,
	VV_LIBC_MEMORY_NAMES(NAME)
#undef NAME
};

_Atomic(void *) vv_libc_memory_found[VV_LIBC_MEMORY_COUNT];

void *vv_libc_memory_find(enum vv_libc_memory_id id)
{
	void *f = dlsym(RTLD_NEXT, names[id]);

	atomic_store_explicit(&vv_libc_memory_found[id], f, memory_order_relaxed);
	return f;
}

void *vv_libc_memory_move(void *theirs, size_t n)
{
	void *p = theirs && !vv_heap_owns(theirs) ? vv_heap_alloc(n) : NULL;
	size_t room = p ? malloc_usable_size(theirs) : 0;

	if (!p)
		return theirs;
	memcpy(p, theirs, n < room ? n : room);
	__libc_free(theirs);
	return p;
}

/* Moves a string to the heap, if the caller gets memory of the heap. */
static char *give_string(char *theirs, uintptr_t caller)
{
	return theirs && vv_alloc_is_for_program(caller) ? vv_libc_memory_move(theirs, strlen(theirs) + 1) : theirs;
}

/* getcwd is wrapped anyway: it fills a buffer or returns a string. */
__attribute__((constructor)) static void begin(void)
{
	vv_wrap_given = give_string;
}

#define GIVEN(string) give_string(string, (uintptr_t)__builtin_return_address(0))

/* ---- strings --------------------------------------------------------------------------------- */

static char *duplicate(const char *s, size_t n, bool program)
{
	char *p = program ? vv_heap_alloc(n + 1) : vv_alloc_process_malloc(n + 1);

	if (p) {
		memcpy(p, s, n);
		p[n] = 0;
	}
	return p;
}

char *strdup(const char *s)
{
	return duplicate(s, strlen(s), FOR_PROGRAM());
}

char *__strdup(const char *s)
{
	return duplicate(s, strlen(s), FOR_PROGRAM());
}

char *strndup(const char *s, size_t n)
{
	return duplicate(s, strnlen(s, n), FOR_PROGRAM());
}

char *__strndup(const char *s, size_t n)
{
	return duplicate(s, strnlen(s, n), FOR_PROGRAM());
}

wchar_t *wcsdup(const wchar_t *s)
{
	size_t n = (wcslen(s) + 1) * sizeof(*s);
	wchar_t *p = FOR_PROGRAM() ? vv_heap_alloc(n) : vv_alloc_process_malloc(n);

	return p ? memcpy(p, s, n) : NULL;
}

__attribute__((format(printf, 2, 0))) static int print(char **out, const char *fmt, va_list ap, bool program)
{
	va_list again;
	char *p;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	p = n < 0 ? NULL : program ? vv_heap_alloc((size_t)n + 1) : vv_alloc_process_malloc((size_t)n + 1);
	if (!p)
		return -1;
	*out = p;
	return vsnprintf(p, (size_t)n + 1, fmt, ap);
}

int vasprintf(char **out, const char *fmt, va_list ap)
{
	return print(out, fmt, ap, FOR_PROGRAM());
}

int __vasprintf_chk(char **out, int flag, const char *fmt, va_list ap)
{
	(void)flag;
	return print(out, fmt, ap, FOR_PROGRAM());
}

int asprintf(char **out, const char *fmt, ...)
{
	bool program = FOR_PROGRAM();
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = print(out, fmt, ap, program);
	va_end(ap);
	return n;
}

int __asprintf_chk(char **out, int flag, const char *fmt, ...)
{
	bool program = FOR_PROGRAM();
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, fmt);
	n = print(out, fmt, ap, program);
	va_end(ap);
	return n;
}

/* The C library extends the line by realloc, which decides by the address. */
static ssize_t read_line(char **line, size_t *room, int end, FILE *f, bool program)
{
	if (program && line && room && !*line) {
		*line = vv_heap_alloc(128);
		*room = *line ? 128 : 0;
	}
	return THEIRS(getdelim)(line, room, end, f);
}

ssize_t getline(char **line, size_t *room, FILE *f)
{
	return read_line(line, room, '\n', f, FOR_PROGRAM());
}

ssize_t getdelim(char **line, size_t *room, int end, FILE *f)
{
	return read_line(line, room, end, f, FOR_PROGRAM());
}

ssize_t __getdelim(char **line, size_t *room, int end, FILE *f)
{
	return read_line(line, room, end, f, FOR_PROGRAM());
}

char *realpath(const char *path, char *buf)
{
	char *p = THEIRS(realpath)(path, buf);

	return buf ? p : GIVEN(p);
}

char *__realpath_chk(const char *path, char *buf, size_t room)
{
	char *p = THEIRS(__realpath_chk)(path, buf, room);

	return buf ? p : GIVEN(p);
}

char *canonicalize_file_name(const char *path)
{
	return GIVEN(THEIRS(canonicalize_file_name)(path));
}

char *get_current_dir_name(void)
{
	return GIVEN(THEIRS(get_current_dir_name)());
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
char *tempnam(const char *folder, const char *prefix)
{
	return GIVEN(THEIRS(tempnam)(folder, prefix));
}
#pragma GCC diagnostic pop

/* ---- lists of strings ------------------------------------------------------------------------ */

/* One block: pointers, then the strings. */
char **backtrace_symbols(void *const *at, int n)
{
	bool program = FOR_PROGRAM();
	char **list = THEIRS(backtrace_symbols)(at, n);
	size_t size = (size_t)(n > 0 ? n : 0) * sizeof(*list);
	uintptr_t was = (uintptr_t)list;

	if (!list || !program)
		return list;
	for (int i = 0; i < n; i++) {
		size_t end = (size_t)(list[i] - (char *)list) + strlen(list[i]) + 1;

		size = end > size ? end : size;
	}
	list = vv_libc_memory_move(list, size);
	for (int i = 0; i < n; i++)
		list[i] += (uintptr_t)list - was;
	return list;
}

static void move_list(char ***list, size_t first, size_t n)
{
	if (!*list)
		return;
	*list = vv_libc_memory_move(*list, (first + n + 1) * sizeof(**list));
	for (size_t i = first; i < first + n; i++)
		if ((*list)[i])
			(*list)[i] = vv_libc_memory_move((*list)[i], strlen((*list)[i]) + 1);
}

/* After any other error it has freed everything, or read nothing. */
int glob(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *g)
{
	bool program = FOR_PROGRAM();
	int rc = THEIRS(glob)(pattern, flags, failed, g);

	if (program && (rc == 0 || rc == GLOB_ABORTED))
		move_list(&g->gl_pathv, g->gl_offs, g->gl_pathc);
	return rc;
}

int glob64(const char *pattern, int flags, int (*failed)(const char *, int), glob64_t *g)
{
	bool program = FOR_PROGRAM();
	int rc = THEIRS(glob64)(pattern, flags, failed, g);

	if (program && (rc == 0 || rc == GLOB_ABORTED))
		move_list(&g->gl_pathv, g->gl_offs, g->gl_pathc);
	return rc;
}

int wordexp(const char *text, wordexp_t *w, int flags)
{
	bool program = FOR_PROGRAM();
	int rc = THEIRS(wordexp)(text, w, flags);

	if (program && (rc == 0 || rc == WRDE_NOSPACE))
		move_list(&w->we_wordv, w->we_offs, w->we_wordc);
	return rc;
}

/* struct dirent64 has the same layout. */
static int move_entries(struct dirent ***list, int n, bool program)
{
	if (!program || n < 0 || !*list)
		return n;
	*list = vv_libc_memory_move(*list, (size_t)(n ? n : 1) * sizeof(**list));
	for (int i = 0; i < n; i++)
		(*list)[i] = vv_libc_memory_move((*list)[i], (*list)[i]->d_reclen);
	return n;
}

int scandir(const char *path, struct dirent ***list, int (*wanted)(const struct dirent *), int (*order)(const struct dirent **, const struct dirent **))
{
	bool program = FOR_PROGRAM();

	return move_entries(list, THEIRS(scandir)(path, list, wanted, order), program);
}

int scandirat(int at, const char *path, struct dirent ***list, int (*wanted)(const struct dirent *),
	      int (*order)(const struct dirent **, const struct dirent **))
{
	bool program = FOR_PROGRAM();

	return move_entries(list, THEIRS(scandirat)(at, path, list, wanted, order), program);
}

int scandir64(const char *path, struct dirent64 ***list, int (*wanted)(const struct dirent64 *),
	      int (*order)(const struct dirent64 **, const struct dirent64 **))
{
	bool program = FOR_PROGRAM();

	return move_entries((struct dirent ***)list, THEIRS(scandir64)(path, list, wanted, order), program);
}

int scandirat64(int at, const char *path, struct dirent64 ***list, int (*wanted)(const struct dirent64 *),
		int (*order)(const struct dirent64 **, const struct dirent64 **))
{
	bool program = FOR_PROGRAM();

	return move_entries((struct dirent ***)list, THEIRS(scandirat64)(at, path, list, wanted, order), program);
}
