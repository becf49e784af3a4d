// More cases of here_gifts.c: what scanf and its kin allocate, from the standard input, a stream or a string, narrow and wide, with a list of
// arguments or without.
enum { INPUT, STREAM, STRING };

static int call_list(void *fn, int from, const void *source, const void *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = from == INPUT ? ((int (*)(const void *, va_list))fn)(fmt, ap) : ((int (*)(const void *, const void *, va_list))fn)(source, fmt, ap);
	va_end(ap);
	return n;
}

#define CALL(fn, from, list, source, fmt, ...)                                                                                                   \
	((list) ? call_list(fn, from, source, fmt, __VA_ARGS__)                                                                                  \
	 : (from) == INPUT ? ((int (*)(const void *, ...))(fn))(fmt, __VA_ARGS__)                                                                \
	 : ((int (*)(const void *, const void *, ...))(fn))(source, fmt, __VA_ARGS__))

/* What is scanned: a string, a new stream, or stdin made anew, which has no orientation yet. */
static const void *source(int from, int wide, const char *text, const wchar_t *wide_text)
{
	FILE *f;

	if (from == STRING)
		return wide ? (const void *)wide_text : text;
	f = fopen("scanned", "w");
	fputs(text, f);
	fclose(f);
	return from == INPUT ? freopen("scanned", "r", stdin) : fopen("scanned", "r");
}

static void done(int from, const void *s)
{
	if (from == STREAM)
		fclose((FILE *)(uintptr_t)s);
	unlink("scanned");
}

#define TEXT "word wide 17 ] abcx345 tail"
#define FORMAT "%ms %mls %*s %m[]] %5m[^x]x%2mc%n%c"
#define BROKEN "%ms %d %ms"
#define PLACES "%2$ms %1$ms %4$d %3$m[]]"

static int scanned(const char *name, int from, int list, int wide, int old)
{
	void *fn = dlsym(RTLD_DEFAULT, name);
	char *a = NULL, *set = NULL, *other = NULL, *two = NULL, last = 0;
	wchar_t *w = NULL;
	const void *s = source(from, wide, TEXT, L"" TEXT);
	const void *fmt = wide ? (const void *)L"" FORMAT : FORMAT;
	int n = 0, d = 0, ok;

	ok = CALL(fn, from, list, s, fmt, &a, &w, &set, &other, &two, &n, &last) == 6 && last == '5' && n == 21;
	ok &= is_heap(a) && strcmp(a, "word") == 0 && is_heap(w) && wcscmp(w, L"wide") == 0 && is_heap(set) && strcmp(set, "]") == 0;
	ok &= is_heap(other) && strcmp(other, "abc") == 0 && is_heap(two) && memcmp(two, "34", 2) == 0;
	done(from, s);
	free(a), free(set), free(other), free(w), free(two);

	a = other = NULL;
	s = source(from, wide, TEXT, L"" TEXT);
	fmt = wide ? (const void *)L"" BROKEN : BROKEN;
	ok &= CALL(fn, from, list, s, fmt, &a, &d, &other) == 1 && given(a, "word") && !other;
	done(from, s);

	a = other = NULL;
	s = source(from, wide, TEXT, L"" TEXT);
	fmt = wide ? (const void *)L"" PLACES : PLACES;
	ok &= CALL(fn, from, list, s, fmt, &a, &other, &set, &d) == 4 && given(a, "wide") && given(other, "word") && given(set, "]") && d == 17;
	done(from, s);

	if (old) {
		s = source(from, wide, TEXT, L"" TEXT);
		fmt = wide ? (const void *)L"%as%a[ wide]" : "%as%a[ wide]";
		ok &= CALL(fn, from, list, s, fmt, &a, &other) == 2 && given(a, "word") && given(other, " wide ");
		done(from, s);
	}
	return ok;
}

#define SCAN_CASES(of, old)                                                                                                                      \
	CASE(of##scanf) { return scanned(#of "scanf", INPUT, 0, 0, old); }                                                                       \
	CASE(of##fscanf) { return scanned(#of "fscanf", STREAM, 0, 0, old); }                                                                    \
	CASE(of##sscanf) { return scanned(#of "sscanf", STRING, 0, 0, old); }                                                                    \
	CASE(of##vscanf) { return scanned(#of "vscanf", INPUT, 1, 0, old); }                                                                     \
	CASE(of##vfscanf) { return scanned(#of "vfscanf", STREAM, 1, 0, old); }                                                                  \
	CASE(of##vsscanf) { return scanned(#of "vsscanf", STRING, 1, 0, old); }                                                                  \
	CASE(of##wscanf) { return scanned(#of "wscanf", INPUT, 0, 1, old); }                                                                     \
	CASE(of##fwscanf) { return scanned(#of "fwscanf", STREAM, 0, 1, old); }                                                                  \
	CASE(of##swscanf) { return scanned(#of "swscanf", STRING, 0, 1, old); }                                                                  \
	CASE(of##vwscanf) { return scanned(#of "vwscanf", INPUT, 1, 1, old); }                                                                   \
	CASE(of##vfwscanf) { return scanned(#of "vfwscanf", STREAM, 1, 1, old); }                                                                \
	CASE(of##vswscanf) { return scanned(#of "vswscanf", STRING, 1, 1, old); }
SCAN_CASES(, 1)
SCAN_CASES(__isoc99_, 0)
#if __GLIBC_PREREQ(2, 38)
SCAN_CASES(__isoc23_, 0)
#endif
