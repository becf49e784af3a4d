/* The kernel's information about shared memory, semaphores and queues. */
#include "preload/wrap/wrap.h"
#include <stdarg.h>

/* Some commands write less, or nothing: announcing more is harmless. */
int shmctl(int id, int command, struct shmid_ds *about)
{
	WRITES_OBJECT(about);
	return REAL(shmctl)(id, command, about);
}

int msgctl(int id, int command, struct msqid_ds *about)
{
	WRITES_OBJECT(about);
	return REAL(msgctl)(id, command, about);
}

/* One number for each semaphore of the set. */
static size_t set_size(int id)
{
	struct semid_ds about = { .sem_nsems = 0 };
	int saved = errno;
	bool known = REAL(semctl)(id, 0, IPC_STAT, &about) == 0;
	errno = saved;
	return known ? about.sem_nsems * sizeof(unsigned short) : 0;
}

static size_t answer_size(int id, int command)
{
	switch (command) {
	case GETALL:
		return set_size(id);
	case IPC_STAT:
	case IPC_INFO:
	case SEM_STAT:
	case SEM_INFO:
	case SEM_STAT_ANY:
		return sizeof(struct semid_ds);
	default:
		return 0;
	}
}

int semctl(int id, int which, int command, ...)
{
	va_list ap;
	va_start(ap, command);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	WRITES(arg, answer_size(id, command));
	return REAL(semctl)(id, which, command, arg);
}

int mq_getattr(mqd_t queue, struct mq_attr *attr)
{
	WRITES_OBJECT(attr);
	return REAL(mq_getattr)(queue, attr);
}

int mq_setattr(mqd_t queue, const struct mq_attr *attr, struct mq_attr *old)
{
	WRITES_OBJECT(old);
	return REAL(mq_setattr)(queue, attr, old);
}
