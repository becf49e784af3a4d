#include "base/err.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 5 * sizeof(((struct vv_err_state *)0)->message) }; /* before it is cut */

static _Thread_local char message[sizeof(((struct vv_err_state *)0)->message)];

/* Messages quote names from a store or an option file, and terminals interpret control
 * characters. */
static void replace_controls(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = *s == '\n' ? ' ' : '?';
}

/* Names of regions and paths may be long: leaves out the middle of the message, and keeps the end,
 * which has the remedy. */
static void cut_middle(const char *words, size_t n)
{
	static const char dots[] = " ... ";
	size_t head = sizeof(message) / 2, tail = sizeof(message) - 1 - head - strlen(dots);

	for (int i = 0; i < 3 && (words[head] & 0xC0) == 0x80; i++) /* not within a character */
		head--;
	for (int i = 0; i < 3 && (words[n - tail] & 0xC0) == 0x80; i++)
		tail--;
	memcpy(message, words, head);
	memcpy(message + head, dots, strlen(dots));
	memcpy(message + head + strlen(dots), words + n - tail, tail + 1);
}

/* Appends the end, unless it is empty. The arguments may quote the message that is replaced. */
__attribute__((format(printf, 3, 0))) static int set(int code, const char *end, const char *fmt, va_list ap)
{
	char words[LONGEST];
	size_t n, most = sizeof(words) - sizeof(message) - 3;
	int wanted = vsnprintf(words, most, fmt, ap);

	n = wanted < 0 ? 0 : (size_t)wanted < most ? (size_t)wanted : most - 1;
	if (end[0])
		n += (size_t)snprintf(words + n, sizeof(words) - n, ": %s", end);
	words[n] = '\0';
	replace_controls(words);
	if (n < sizeof(message))
		memcpy(message, words, n + 1);
	else
		cut_middle(words, n);
	return code;
}

int vv_err_set(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set(code, "", fmt, ap);
	va_end(ap);
	return code;
}

static int code_of_errno(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
		return VV_ENOENT;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return VV_ENOMEM;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return VV_ENOSPC;
	case EACCES:
	case EPERM:
	case EROFS:
		return VV_EDENIED;
	case EINVAL:
	case ENAMETOOLONG:
		return VV_EINVAL;
	default:
		return VV_EIO;
	}
}

int vv_err_sys(int errnum, const char *fmt, ...)
{
	char reason[128];
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = set(code_of_errno(errnum), strerror_r(errnum, reason, sizeof(reason)), fmt, ap);
	va_end(ap);
	return rc;
}

int vv_err_context(int code, const char *fmt, ...)
{
	char inner[sizeof(message)];
	va_list ap;

	memcpy(inner, message, sizeof(inner));
	va_start(ap, fmt);
	set(code, inner, fmt, ap);
	va_end(ap);
	return code;
}

const char *vv_err_last(void)
{
	return message;
}

void vv_err_clear(void)
{
	message[0] = '\0';
}

const char *vv_err_name(int code)
{
	static const char *const names[] = {
		"success",           "invalid argument",   "out of memory",         "input/output error",
		"not found",         "damaged data",       "in use by another",     "does not fit what is stored",
		"no space left",     "not supported here", "permission denied",   "another rank failed",
	};

	return code <= 0 && code > -(int)(sizeof(names) / sizeof(names[0])) ? names[-code] : "unknown error";
}

void vv_err_save(int code, struct vv_err_state *out)
{
	out->code = code;
	memcpy(out->message, message, sizeof(message));
}

int vv_err_restore(const struct vv_err_state *st)
{
	memcpy(message, st->message, sizeof(message));
	return st->code;
}
