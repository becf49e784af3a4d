/* Calls of the public interface that must succeed, or must fail with a code and a message. */
#ifndef VV_TEST_ANSWER_H
#define VV_TEST_ANSWER_H

#include "vv_test.h"
#include <varve/varve.h>

static inline void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

#define FAILS(call, code, words)                                                                   \
	do {                                                                                       \
		CHECK_EQ(call, code);                                                              \
		if (!strstr(varve_last_error(), words)) {                                          \
			fprintf(stderr, "%s:%d: \"%s\" is not in: %s\n", __FILE__, __LINE__, words, varve_last_error()); \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#endif
