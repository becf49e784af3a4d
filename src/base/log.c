#include "base/log.h"
#include "base/err.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic int shown = VV_LOG_WARN;

void vv_log_set_level(enum vv_log_level level)
{
	atomic_store(&shown, (int)level);
}

/* The function of the program. A function that causes another sentence, or replaces itself, comes
 * back to the lock. A child of fork must not find it held. */
static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	void (*fn)(void *arg, int level, const char *sentence);
	void *arg;
} receiver = { .once = PTHREAD_ONCE_INIT };

static _Atomic int has_receiver;

static void lock(void)
{
	pthread_mutex_lock(&receiver.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&receiver.lock);
}

/* Also in a child of fork: there the thread has another number than the one that holds the lock. */
static void make_lock(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&receiver.lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static void prepare(void)
{
	make_lock();
	pthread_atfork(lock, unlock, make_lock);
}

void vv_log_set_function(void (*fn)(void *arg, int level, const char *sentence), void *arg)
{
	pthread_once(&receiver.once, prepare);
	lock();
	receiver.fn = fn;
	receiver.arg = arg;
	atomic_store(&has_receiver, fn != NULL);
	unlock();
}

static _Thread_local bool inside;

bool vv_log_is_inside(void)
{
	return inside;
}

/* Returns false if there is no function. The error of the thread stays. */
static bool hand_over(enum vv_log_level level, const char *line)
{
	struct vv_err_state error;
	bool outer = inside, found;

	lock();
	found = receiver.fn != NULL;
	if (found) {
		vv_err_save(0, &error);
		inside = true;
		receiver.fn(receiver.arg, (int)level, line);
		inside = outer;
		vv_err_restore(&error);
	}
	unlock();
	return found;
}

static void deliver(enum vv_log_level level, const char *line)
{
	if (atomic_load(&has_receiver) && hand_over(level, line))
		return;
	fprintf(stderr, "varve: %s%s\n", level == VV_LOG_WARN ? "warning: " : "", line);
}

__attribute__((format(printf, 2, 0))) static void say(enum vv_log_level level, const char *fmt, va_list ap)
{
	char line[4096]; /* an error, and a region's name */

	if ((int)level > atomic_load(&shown))
		return;
	vsnprintf(line, sizeof(line), fmt, ap);
	deliver(level, line);
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
