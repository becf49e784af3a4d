/* What the C library allocates for the program is on the heap, and what it keeps for itself is not: here_gifts, run in an empty folder. There is a case for
 * every name of libc_memory_names.h, or this does not compile. A program that keeps such things: here_gift_state.c. */
#define obstack_chunk_alloc malloc
#define obstack_chunk_free free
#include "expect.h"
#include "preload/libc_memory_names.h"
#include <argz.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <envz.h>
#include <execinfo.h>
#include <fcntl.h>
#include <glob.h>
#include <iconv.h>
#include <ifaddrs.h>
#include <locale.h>
#include <netdb.h>
#include <obstack.h>
#include <regex.h>
#include <sched.h>
#include <search.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve_here.h>
#include <wchar.h>
#include <wordexp.h>

static int given(char *p, const char *want)
{
	int ok = is_heap(p) && strcmp(p, want) == 0;

	free(p);
	return ok;
}

#define CASE(name) static int case_##name(void)
#define FIND(name) ((__typeof__(name) *)dlsym(RTLD_DEFAULT, #name))

/* ---- strings ----------------------------------------------------------------------------------------------------------------- */

char *__strdup(const char *s);
char *__strndup(const char *s, size_t n);
ssize_t __getdelim(char **line, size_t *room, int end, FILE *f);
char *__realpath_chk(const char *path, char *buf, size_t room);
int __asprintf_chk(char **out, int flag, const char *fmt, ...);
int __vasprintf_chk(char **out, int flag, const char *fmt, va_list ap);

CASE(strdup) { return given(strdup("varve"), "varve"); }
CASE(__strdup) { return given(__strdup("varve"), "varve"); }
CASE(strndup) { return given(strndup("varve", 3), "var"); }
CASE(__strndup) { return given(__strndup("varve", 9), "varve"); }

CASE(wcsdup)
{
	wchar_t *p = wcsdup(L"varve");

	return is_heap(p) && wcscmp(p, L"varve") == 0;
}

static int printed(int chk, const char *fmt, ...)
{
	char *p = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = chk ? __vasprintf_chk(&p, 1, fmt, ap) : vasprintf(&p, fmt, ap);
	va_end(ap);
	return n == 9 && given(p, "42 layers");
}

CASE(vasprintf) { return printed(0, "%d %s", 42, "layers"); }
CASE(__vasprintf_chk) { return printed(1, "%d %s", 42, "layers"); }

CASE(asprintf)
{
	char *p = NULL;

	return asprintf(&p, "%d %s", 42, "layers") == 9 && given(p, "42 layers");
}

CASE(__asprintf_chk)
{
	char *p = NULL;

	return __asprintf_chk(&p, 1, "%d %s", 42, "layers") == 9 && given(p, "42 layers");
}

/* A file with this in it, to be read. */
static FILE *with(const char *text)
{
	FILE *f = tmpfile();

	fputs(text, f);
	rewind(f);
	return f;
}

static int read_by(ssize_t (*fn)(char **, size_t *, int, FILE *), int by)
{
	char text[400], *line = NULL;
	size_t room = 0;
	FILE *f;
	int ok;

	memset(text, 'x', sizeof(text));
	strcpy(text + 300, ";\n");
	f = with(text);
	ok = (fn ? fn(&line, &room, by, f) : getline(&line, &room, f)) == (by == ';' ? 301 : 302) && is_heap(line) && room > 300;
	fclose(f);
	free(line);
	return ok;
}

CASE(getline) { return read_by(NULL, '\n'); }
CASE(getdelim) { return read_by(getdelim, ';'); }
CASE(__getdelim) { return read_by(__getdelim, ';'); }
CASE(canonicalize_file_name) { return given(canonicalize_file_name("/usr/../usr"), "/usr"); }
CASE(__realpath_chk) { return given(__realpath_chk("/usr/./bin/..", NULL, SIZE_MAX), "/usr"); }

CASE(realpath)
{
	char own[4096];

	return given(realpath("/usr/./bin/..", NULL), "/usr") && realpath("/usr/", own) == own && strcmp(own, "/usr") == 0 && !realpath("/no/such", NULL);
}

CASE(get_current_dir_name)
{
	char here[4096], *p = getcwd(NULL, 0);

	return getcwd(here, sizeof(here)) == here && given(get_current_dir_name(), here) && given(p, here) && given(getcwd(NULL, 4096), here);
}

CASE(tempnam)
{
	char *p = FIND(tempnam)(".", "varve");

	return is_heap(p) && strstr(p, "varve");
}

/* ---- lists ------------------------------------------------------------------------------------------------------------------- */

CASE(backtrace_symbols)
{
	void *at[16];
	int n = backtrace(at, 16), ok = n > 0;
	char **list = backtrace_symbols(at, n);

	ok &= is_heap(list);
	for (int i = 0; i < n; i++)
		ok &= is_heap(list[i]) && strlen(list[i]) > 2;
	free(list);
	return ok && backtrace_symbols(at, 0);
}

static int any(const struct dirent *d)
{
	return d->d_name[0] == 'a';
}

static int none(const struct dirent *d)
{
	return d->d_name[0] == '?';
}

/* The 64s are the same functions where this runs. */
typedef int scandir_fn(const char *, struct dirent ***, int (*)(const struct dirent *), int (*)(const struct dirent **, const struct dirent **));
typedef int scandirat_fn(int, const char *, struct dirent ***, int (*)(const struct dirent *), int (*)(const struct dirent **, const struct dirent **));

static int listed(struct dirent **list, int n)
{
	int ok = n == 2 && is_heap(list) && is_heap(list[0]) && is_heap(list[1]) && strcmp(list[0]->d_name, "aa") == 0 && strcmp(list[1]->d_name, "ab") == 0;

	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
	return ok;
}

static int scanned_folder(const char *name)
{
	scandir_fn *fn = (scandir_fn *)dlsym(RTLD_DEFAULT, name);
	struct dirent **list = NULL;
	int n = fn(".", &list, any, alphasort), ok = listed(list, n);

	n = fn(".", &list, none, NULL);
	free(n == 0 ? list : NULL);
	return ok && n == 0 && fn("no such folder", &list, any, NULL) == -1;
}

static int scanned_at(const char *name)
{
	struct dirent **list = NULL;
	int n = ((scandirat_fn *)dlsym(RTLD_DEFAULT, name))(AT_FDCWD, ".", &list, any, alphasort);

	return listed(list, n);
}

CASE(scandir) { return scanned_folder("scandir"); }
CASE(scandir64) { return scanned_folder("scandir64"); }
CASE(scandirat) { return scanned_at("scandirat"); }
CASE(scandirat64) { return scanned_at("scandirat64"); }

typedef int glob_fn(const char *, int, int (*)(const char *, int), glob_t *);

static int globbed(const char *name)
{
	glob_fn *fn = (glob_fn *)dlsym(RTLD_DEFAULT, name);
	glob_t g = { .gl_offs = 2 };
	int ok;

	ok = fn("no such*", 0, NULL, &g) == GLOB_NOMATCH;
	g.gl_offs = 2;
	ok &= fn("a*", GLOB_DOOFFS, NULL, &g) == 0 && g.gl_pathc == 2 && fn("?b", GLOB_DOOFFS | GLOB_APPEND, NULL, &g) == 0 && g.gl_pathc == 3;
	ok &= is_heap(g.gl_pathv) && !g.gl_pathv[0] && is_heap(g.gl_pathv[2]) && is_heap(g.gl_pathv[4]) && strcmp(g.gl_pathv[4], "ab") == 0 && !g.gl_pathv[5];
	globfree(&g);
	return ok;
}

CASE(glob) { return globbed("glob"); }
CASE(glob64) { return globbed("glob64"); }

CASE(wordexp)
{
	wordexp_t w;
	int ok = wordexp("one a*", &w, 0) == 0 && w.we_wordc == 3 && is_heap(w.we_wordv) && is_heap(w.we_wordv[0]) && is_heap(w.we_wordv[2]);

	ok &= wordexp("$((40 + 2))", &w, WRDE_APPEND) == 0 && w.we_wordc == 4 && strcmp(w.we_wordv[3], "42") == 0 && is_heap(w.we_wordv[3]) && !w.we_wordv[4];
	wordfree(&w);
	return ok && wordexp("(", &w, 0) == WRDE_BADCHAR;
}

/* ---- streams ------------------------------------------------------------------------------------------------------------------ */

CASE(open_memstream)
{
	char *p = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&p, &n), *other = tmpfile();
	int ok;

	for (int i = 0; i < 10000; i++)
		fprintf(f, "%d ", i % 10);
	fflush(f);
	ok = n == 20000 && p[19998] == '9';
	fclose(other);
	fclose(f);
	ok &= is_heap(p) && n == 20000 && strlen(p) == n;
	free(p);
	fclose(open_memstream(&p, &n));
	return ok && n == 0 && given(p, "");
}

CASE(open_wmemstream)
{
	wchar_t *p = NULL;
	size_t n = 0;
	FILE *f = open_wmemstream(&p, &n);

	fwprintf(f, L"%d layers", 42);
	fclose(f);
	return is_heap(p) && n == 9 && wcscmp(p, L"42 layers") == 0;
}

static int buffered(void (*set)(FILE *, char *))
{
	char *lent = calloc(1, BUFSIZ), line[64] = "";
	FILE *f = fopen("buffered", "w+");
	int ok;

	set(f, lent);
	fputs("a line\n", f);
	ok = lent[0] == 0; /* the stream has another */
	rewind(f);
	ok &= fgets(line, sizeof(line), f) && strcmp(line, "a line\n") == 0;
	ok &= fclose(f) == 0;
	unlink("buffered");
	free(lent);
	return ok;
}

static void by_setvbuf(FILE *f, char *p)
{
	setvbuf(f, p, _IOFBF, BUFSIZ);
	setvbuf(f, p, _IOFBF, 100);
}

static void by_setbuffer(FILE *f, char *p)
{
	setbuffer(f, p, 100);
}

CASE(setvbuf) { return buffered(by_setvbuf); }
CASE(setbuffer) { return buffered(by_setbuffer); }
CASE(setbuf) { return buffered(setbuf); }
CASE(fclose) { return fclose(with("x")) == 0; }

#include "gift_scanf.h"

/* ---- what is tied into the program's own ----------------------------------------------------------------------------------------- */

static FILE *met;

static int by_name(const void *a, const void *b)
{
	if (!met)
		met = fopen("/dev/null", "r"); /* whatever is done in here is not the tree's */
	return strcmp(a, b);
}

CASE(tsearch)
{
	void *root = NULL, *node[3];
	const char *name[3] = { "b", "a", "c" };
	int ok = 1;

	for (int i = 0; i < 3; i++)
		ok &= is_heap(node[i] = tsearch(name[i], &root, by_name)) && *(const char **)node[i] == name[i];
	ok &= tfind("a", &root, by_name) == node[1] && is_heap(root) && met && !is_heap(met);
	for (int i = 0; i < 3; i++)
		tdelete(name[i], &root, by_name);
	return ok && !root;
}

CASE(hcreate_r)
{
	struct hsearch_data table = { 0 };
	ENTRY e = { .key = (char *)(uintptr_t)"key", .data = &bad }, *found = NULL;
	int ok = hcreate_r(30, &table) && is_heap(table.table) && hsearch_r(e, ENTER, &found, &table) && is_heap(found) && found->data == &bad;

	hdestroy_r(&table);
	return ok;
}

CASE(__sched_cpualloc)
{
	cpu_set_t *p = CPU_ALLOC(5000);
	int ok = is_heap(p);

	CPU_FREE(p);
	return ok;
}

static int counted(char *z, size_t n, size_t want)
{
	int ok = is_heap(z) && argz_count(z, n) == want;

	free(z);
	return ok;
}

#define ARGZ_CASE(name, want, ...)                                                                                                               \
	CASE(name)                                                                                                                               \
	{                                                                                                                                        \
		char *z = NULL;                                                                                                                  \
		size_t n = 0;                                                                                                                    \
                                                                                                                                                 \
		return name(__VA_ARGS__) == 0 && counted(z, n, want);                                                                            \
	}
static char *two_words[] = { (char *)(uintptr_t)"one", (char *)(uintptr_t)"two", NULL };
ARGZ_CASE(argz_create, 2, two_words, &z, &n)
ARGZ_CASE(argz_create_sep, 3, "a:b:c", ':', &z, &n)
ARGZ_CASE(argz_add, 1, &z, &n, "one")
ARGZ_CASE(argz_add_sep, 2, &z, &n, "one:two", ':')
ARGZ_CASE(argz_append, 2, &z, &n, "a\0b", 4)
ARGZ_CASE(argz_insert, 1, &z, &n, NULL, "one")
ARGZ_CASE(envz_add, 1, &z, &n, "name", "value")
ARGZ_CASE(envz_merge, 2, &z, &n, "a=1\0b=2", 8, 1)

CASE(argz_replace)
{
	char *z = NULL;
	size_t n = 0;
	unsigned count = 0;

	return argz_create_sep("abc:b", ':', &z, &n) == 0 && argz_replace(&z, &n, "b", "something longer", &count) == 0 && count == 2 && counted(z, n, 2);
}

static int filled(struct obstack *o)
{
	int ok = is_heap(o->chunk);

	for (int i = 0; i < 1000; i++)
		ok &= is_heap(obstack_copy0(o, "a string of some length", 23));
	obstack_free(o, NULL);
	return ok;
}

static void *get(void *arg, long n)
{
	return arg ? malloc((size_t)n) : NULL;
}

static void give(void *arg, void *p)
{
	(void)arg;
	free(p);
}

CASE(_obstack_begin)
{
	struct obstack o;

	return obstack_init(&o) && filled(&o);
}

CASE(_obstack_begin_1)
{
	struct obstack o;

	return obstack_specify_allocation_with_arg(&o, 0, 0, get, give, &o) && filled(&o);
}

CASE(_obstack_newchunk)
{
	struct obstack o;
	int ok = obstack_init(&o);

	obstack_blank(&o, 100000);
	ok &= is_heap(obstack_base(&o)) && is_heap(obstack_finish(&o));
	obstack_free(&o, NULL);
	return ok;
}

int __obstack_printf_chk(struct obstack *o, int flag, const char *fmt, ...);
int __obstack_vprintf_chk(struct obstack *o, int flag, const char *fmt, va_list ap);

static int list_printed(struct obstack *o, int chk, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = chk ? __obstack_vprintf_chk(o, 1, fmt, ap) : obstack_vprintf(o, fmt, ap);
	va_end(ap);
	return n;
}

#define PRINT_CASE(name, call)                                                                                                                   \
	CASE(name)                                                                                                                               \
	{                                                                                                                                        \
		struct obstack o;                                                                                                                \
		int ok = obstack_init(&o) && (call) == 20000 && obstack_object_size(&o) == 20000 && is_heap(obstack_base(&o));                   \
                                                                                                                                                 \
		obstack_free(&o, NULL);                                                                                                          \
		return ok;                                                                                                                       \
	}
PRINT_CASE(obstack_printf, obstack_printf(&o, "%20000d", 7))
PRINT_CASE(obstack_vprintf, list_printed(&o, 0, "%20000d", 7))
PRINT_CASE(__obstack_printf_chk, __obstack_printf_chk(&o, 1, "%20000d", 7))
PRINT_CASE(__obstack_vprintf_chk, list_printed(&o, 1, "%20000d", 7))

/* An expression and what comes of using it: nothing of it outside, or it would not be there after a restart. */
CASE(regcomp)
{
	regex_t re;
	int ok = regcomp(&re, "^([a-z]+)(, *([a-z]+))*$", REG_EXTENDED) == 0 && is_heap(re.buffer);

	regfree(&re);
	return ok && regcomp(&re, "(", REG_EXTENDED) != 0;
}

CASE(regexec)
{
	regmatch_t m[4];
	regex_t re;
	int ok = regcomp(&re, "([a-z]+), *([a-z]+)$", REG_EXTENDED) == 0;

	ok &= regexec(&re, "one, two, three", 4, m, 0) == 0 && m[1].rm_so == 5 && m[2].rm_eo == 15 && regexec(&re, "!", 4, m, 0) == REG_NOMATCH;
	regfree(&re);
	return ok;
}

static int compiled(struct re_pattern_buffer *re)
{
	*re = (struct re_pattern_buffer){ .fastmap = malloc(256) };
	re_set_syntax(RE_SYNTAX_POSIX_EXTENDED);
	return re_compile_pattern("b+", 2, re) == NULL && is_heap(re->buffer);
}

#define MATCH_CASE(name, call)                                                                                                                   \
	CASE(name)                                                                                                                               \
	{                                                                                                                                        \
		struct re_pattern_buffer re;                                                                                                     \
		struct re_registers m = { 0 };                                                                                                   \
		int ok = compiled(&re) && (call) && (!m.num_regs || is_heap(m.start));                                                           \
                                                                                                                                                 \
		regfree(&re);                                                                                                                    \
		return ok;                                                                                                                       \
	}
MATCH_CASE(re_compile_pattern, re.re_nsub == 0)
MATCH_CASE(re_compile_fastmap, re_compile_fastmap(&re) == 0)
MATCH_CASE(re_search, re_search(&re, "aabb", 4, 0, 4, &m) == 2 && m.num_regs)
MATCH_CASE(re_search_2, re_search_2(&re, "aa", 2, "bb", 2, 0, 4, &m, 4) == 2 && m.num_regs)
MATCH_CASE(re_match, re_match(&re, "aabb", 4, 2, &m) == 2 && m.num_regs)
MATCH_CASE(re_match_2, re_match_2(&re, "aa", 2, "bb", 2, 2, &m, 4) == 2 && m.num_regs)

#define ACTION_CASE(name, ...)                                                                                                                   \
	CASE(name)                                                                                                                               \
	{                                                                                                                                        \
		posix_spawn_file_actions_t a;                                                                                                    \
		int ok = posix_spawn_file_actions_init(&a) == 0 && name(&a, __VA_ARGS__) == 0 && is_heap(a.__actions);                           \
                                                                                                                                                 \
		posix_spawn_file_actions_destroy(&a);                                                                                            \
		return ok;                                                                                                                       \
	}
ACTION_CASE(posix_spawn_file_actions_addopen, 5, "file", O_RDONLY, 0)
ACTION_CASE(posix_spawn_file_actions_addclose, 5)
ACTION_CASE(posix_spawn_file_actions_adddup2, 5, 6)
#if __GLIBC_PREREQ(2, 29)
ACTION_CASE(posix_spawn_file_actions_addchdir_np, "/")
ACTION_CASE(posix_spawn_file_actions_addfchdir_np, 5)
#endif
#if __GLIBC_PREREQ(2, 34)
ACTION_CASE(posix_spawn_file_actions_addclosefrom_np, 5)
#endif
#if __GLIBC_PREREQ(2, 35)
ACTION_CASE(posix_spawn_file_actions_addtcsetpgrp_np, 0)
#endif

/* ---- what stays the C library's ------------------------------------------------------------------------------------------------------ */

static void check_outside(void)
{
	struct addrinfo *addresses = NULL, wanted = { .ai_flags = AI_NUMERICHOST };
	struct ifaddrs *interfaces = NULL;
	DIR *d = opendir(".");
	FILE *f = fopen("/dev/null", "r"), *p = popen("true", "r");
	iconv_t c = iconv_open("UTF-16", "UTF-8");
	locale_t l = newlocale(LC_ALL_MASK, "C.UTF-8", NULL);

	expect("streams and folders are outside", d && f && p && !is_heap(d) && !is_heap(f) && !is_heap(p));
	expect("conversions and locales are outside", !is_heap(c) && !is_heap(l) && !is_heap(setlocale(LC_ALL, "C.UTF-8")));
	expect("addresses are outside", getaddrinfo("127.0.0.1", "80", &wanted, &addresses) == 0 && !is_heap(addresses));
	expect("interfaces are outside", getifaddrs(&interfaces) != 0 || !is_heap(interfaces));
	setenv("a_new_name", "a value", 1);
	expect("the environment is outside", !is_heap(getenv("a_new_name")) && !is_heap(environ));
	freeaddrinfo(addresses);
	freeifaddrs(interfaces);
	closedir(d);
	fclose(f);
	pclose(p);
}

static int walk(void)
{
	fclose(fopen("aa", "w"));
	fclose(fopen("ab", "w"));
#define TRY(name) expect(#name, case_##name());
	VV_LIBC_MEMORY_NAMES(TRY)
	check_outside();
	VV_LIBC_MEMORY_NAMES(TRY) /* once more, in another locale */
	puts(bad ? "bad" : "good");
	return bad != 0;
}

int main(void)
{
	return walk();
}
