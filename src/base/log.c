#include "base/log.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic int shown = VV_LOG_WARN;

void vv_log_set_level(enum vv_log_level level)
{
	atomic_store(&shown, (int)level);
}

__attribute__((format(printf, 2, 0))) static void say(enum vv_log_level level, const char *fmt, va_list ap)
{
	char line[1200];

	if ((int)level > atomic_load(&shown))
		return;
	vsnprintf(line, sizeof(line), fmt, ap);
	fprintf(stderr, "varve: %s%s\n", level == VV_LOG_WARN ? "warning: " : "", line);
}

void vv_log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(VV_LOG_WARN, fmt, ap);
	va_end(ap);
}

void vv_log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(VV_LOG_INFO, fmt, ap);
	va_end(ap);
}
