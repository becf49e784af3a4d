/* Linked into a program, for test_here.py: its environment is empty when it begins. */
#include <stdlib.h>

__attribute__((constructor)) static void begin(void)
{
	clearenv();
}
