/* An error is worded where it is found and makes everyone above return false. */
#ifndef GRAPHLETS_COMPLAIN_H
#define GRAPHLETS_COMPLAIN_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static inline bool __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
	va_list args;

	fputs("graphlets: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return false;
}

#endif
