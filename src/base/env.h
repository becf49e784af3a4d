/* Settings from the environment. A program may clear that before the first call that asks for one: what was there when it was loaded can be kept. */
#ifndef VV_BASE_ENV_H
#define VV_BASE_ENV_H

/* Keeps the variables of varve and of its stores as they are now, for as long as the process lives. */
void vv_env_keep(void);
/* As it is now; else as it was kept; NULL: there is none. */
const char *vv_env_get(const char *name);

#endif
