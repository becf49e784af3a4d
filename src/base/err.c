#include "base/err.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[sizeof(((struct vv_err_state *)0)->message)];

/* Messages quote names from a store or an option file, and terminals interpret control
 * characters. */
static void replace_controls(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = *s == '\n' ? ' ' : '?';
}

/* The arguments may quote the message that is replaced. */
int vv_err_set(int code, const char *fmt, ...)
{
	char words[sizeof(message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	replace_controls(words);
	memcpy(message, words, sizeof(words));
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
	char reason[128], words[sizeof(message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	return vv_err_set(code_of_errno(errnum), "%s: %s", words, strerror_r(errnum, reason, sizeof(reason)));
}

int vv_err_context(int code, const char *fmt, ...)
{
	char inner[sizeof(message)], words[sizeof(message)];
	va_list ap;

	memcpy(inner, message, sizeof(inner));
	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	return vv_err_set(code, "%s: %s", words, inner);
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
