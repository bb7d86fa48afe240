/* Gives the folder for files that the command could compute again, but stores to save time.
 *
 * In: XDG_CACHE_HOME or HOME. Out: the path of a folder, which may not exist yet. */
#ifndef FR_TOOLS_CLI_CACHE_FOLDER_H
#define FR_TOOLS_CLI_CACHE_FOLDER_H

/* Returns $XDG_CACHE_HOME/forerun or ~/.cache/forerun, malloc'd; NULL if neither variable has an absolute path. */
char *fr_cache_folder(void);

#endif
