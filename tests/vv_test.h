// Checks for test programs. A failed check names its place and ends the program: exit 1 = failed, 77 = skipped.
#ifndef VV_TEST_H
#define VV_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(e)                                                                                   \
	do {                                                                                       \
		if (!(e)) {                                                                        \
			fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #e);      \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

// Integers of any width and sign; both are compared as 64 bits.
#define CHECK_EQ(a, b) vv_test_eq((long long)(a), (long long)(b), #a, #b, __FILE__, __LINE__)

// Strings; NULL equals only NULL.
#define CHECK_STR(a, b) vv_test_str((a), (b), #a, #b, __FILE__, __LINE__)

#define SKIP(why)                                                                                  \
	do {                                                                                       \
		fprintf(stderr, "skip: %s\n", (why));                                              \
		exit(77);                                                                          \
	} while (0)

static inline void vv_test_eq(long long a, long long b, const char *a_text, const char *b_text, const char *file,
			      int line)
{
	if (a == b)
		return;
	fprintf(stderr, "%s:%d: CHECK_EQ(%s, %s) failed: %lld (0x%llx) != %lld (0x%llx)\n", file, line, a_text, b_text, a,
		(unsigned long long)a, b, (unsigned long long)b);
	exit(1);
}

static inline void vv_test_str(const char *a, const char *b, const char *a_text, const char *b_text, const char *file,
			       int line)
{
	if (a == b || (a && b && strcmp(a, b) == 0))
		return;
	fprintf(stderr, "%s:%d: CHECK_STR(%s, %s) failed: \"%s\" != \"%s\"\n", file, line, a_text, b_text, a ? a : "(null)",
		b ? b : "(null)");
	exit(1);
}

#endif
