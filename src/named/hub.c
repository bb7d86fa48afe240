/* Finds models in Hugging Face's cache, and in LM Studio's folder (stores.h).
 *
 *     models--ORG--NAME/refs/main              the commit of a branch, 40 hexadecimal digits
 *     models--ORG--NAME/snapshots/COMMIT/...   the files of the commit, as links to blobs
 *     models--ORG--NAME/blobs/...              the contents of the files; NAME.incomplete during a download
 *
 * LM Studio's folder has the files themselves, ORG/NAME/... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "src/named/repository.h"

#define PREFIX "models--"

enum { COMMIT = 40 };

static fr_status print_path(char **path, const char *folder, const char *middle, const char *last) {
    if (asprintf(path, "%s%s%s", folder, middle, last) >= 0) return FR_OK;
    *path = NULL;
    return fr_fail_memory("a path", strlen(folder) + strlen(middle) + strlen(last));
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Reads the commit in a branch's file. Returns false if the file contains something else. */
static bool read_commit(const char *path, char commit[COMMIT + 1]) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t length = fread(commit, 1, COMMIT, file);
    fclose(file);
    commit[length] = '\0';
    return length == COMMIT && strspn(commit, "0123456789abcdefABCDEF") == COMMIT;
}

/* Finds the snapshot of a branch. *snapshot: its folder, or NULL if the folder does not exist. */
static fr_status snapshot_of(const char *repository, const char *branch, char **snapshot) {
    char *path, commit[COMMIT + 1];
    FR_TRY(print_path(&path, repository, "/refs/", branch));
    bool known = read_commit(path, commit);
    free(path);
    *snapshot = NULL;
    if (!known) return FR_OK;
    FR_TRY(print_path(snapshot, repository, "/snapshots/", commit));
    if (is_folder(*snapshot)) return FR_OK;
    free(*snapshot);
    *snapshot = NULL;
    return FR_OK;
}

/* Finds the snapshot of the branch main. If there is none, finds that of another branch. If there is none either, finds
 * the only snapshot, because a download of a given commit creates no branch. */
static fr_status find_snapshot(const char *repository, char **snapshot) {
    fr_names branches = {0}, commits = {0};
    char *refs = NULL, *snapshots = NULL;
    FR_TRY(snapshot_of(repository, "main", snapshot));
    if (*snapshot) return FR_OK;
    fr_status status = print_path(&refs, repository, "/refs", "");
    if (status == FR_OK) status = print_path(&snapshots, repository, "/snapshots", "");
    if (status == FR_OK) status = fr_names_files(refs, 1, &branches);
    for (size_t i = 0; status == FR_OK && !*snapshot && i < branches.count; i++)
        status = snapshot_of(repository, branches.items[i], snapshot);
    if (status == FR_OK && !*snapshot) status = fr_names_folders(snapshots, &commits);
    if (status == FR_OK && commits.count == 1) status = print_path(snapshot, snapshots, "/", commits.items[0]);
    fr_names_free(&branches);
    fr_names_free(&commits);
    free(refs);
    free(snapshots);
    return status;
}

/* Finds out if some download of the repository is unfinished. */
static fr_status find_unfinished(const char *repository, bool *unfinished) {
    char *blobs;
    fr_names names;
    *unfinished = false;
    FR_TRY(print_path(&blobs, repository, "/blobs", ""));
    fr_status status = fr_names_files(blobs, 0, &names);
    free(blobs);
    for (size_t i = 0; status == FR_OK && i < names.count; i++)
        *unfinished |= strstr(names.items[i], ".incomplete") != NULL;
    if (status == FR_OK) fr_names_free(&names);
    return status;
}

static fr_status find_in(const char *repository, const char *which, fr_found_files *found) {
    char *snapshot;
    bool unfinished = false;
    FR_TRY(find_snapshot(repository, &snapshot));
    fr_status status = snapshot ? fr_repository_find(snapshot, which, found) : FR_OK;
    if (status == FR_OK && !found->path) status = find_unfinished(repository, &unfinished);
    if (unfinished)
        status = fr_fail(FR_INPUT, "%s: its download is not finished", repository);
    else if (status == FR_OK && snapshot && !found->path && !found->others && !*which)
        status = fr_repository_find_other(snapshot, found);
    free(snapshot);
    return status;
}

fr_status fr_hub_find(const char *folder, const fr_model_name *name, fr_found_files *found) {
    char *repository;
    if (asprintf(&repository, "%s/" PREFIX "%s--%s", folder, name->org, name->model) < 0)
        return fr_fail_memory("a path", strlen(folder));
    fr_status status = is_folder(repository) ? find_in(repository, name->which, found) : FR_OK;
    free(repository);
    return status;
}

/* Reads ORG/NAME from a folder's name. Returns false if the folder is not that of a model. */
static bool name_of(const char *folder, char *name, size_t size) {
    const char *org = folder + strlen(PREFIX), *dashes;
    if (strncmp(folder, PREFIX, strlen(PREFIX)) != 0 || !(dashes = strstr(org, "--"))) return false;
    if (!fr_model_name_part(org, (size_t)(dashes - org)) || !fr_model_name_part(dashes + 2, strlen(dashes + 2)))
        return false;
    return (size_t)snprintf(name, size, "%.*s/%s", (int)(dashes - org), org, dashes + 2) < size;
}

static fr_status list_one(const char *repository, const char *name, const fr_found_told *to) {
    char *snapshot;
    bool unfinished;
    FR_TRY(find_unfinished(repository, &unfinished));
    FR_TRY(find_snapshot(repository, &snapshot));
    fr_found found = {
        .name = name, .path = repository, .store = "Hugging Face", .problem = "its download is not finished"};
    fr_status status = snapshot ? fr_repository_list(snapshot, name, found.store, !unfinished, to) : FR_OK;
    free(snapshot);
    if (status == FR_OK && unfinished && !to->told(to->context, &found))
        status = fr_fail(FR_ABORTED, "%s: no more", name);
    return status;
}

/* A function that visits a folder. own: the folder's name; above: the name of the folder that contains it. */
typedef fr_status visit_fn(const char *path, const char *own, const char *above, const fr_found_told *to);

static fr_status each_folder(const char *folder, visit_fn *visit, const char *above, const fr_found_told *to) {
    fr_names names;
    FR_TRY(fr_names_folders(folder, &names));
    fr_status status = FR_OK;
    for (size_t i = 0; status == FR_OK && i < names.count; i++) {
        char *path;
        status = print_path(&path, folder, "/", names.items[i]);
        if (status == FR_OK) status = visit(path, names.items[i], above, to);
        free(path);
    }
    fr_names_free(&names);
    return status;
}

static fr_status visit_repository(const char *path, const char *own, const char *above, const fr_found_told *to) {
    char name[2 * FR_NAME_PART];
    (void)above;
    return name_of(own, name, sizeof name) ? list_one(path, name, to) : FR_OK;
}

fr_status fr_hub_list(const char *folder, const fr_found_told *to) {
    return each_folder(folder, visit_repository, "", to);
}

/* -------------------------------------------------------------------------------------------------------- LM Studio */

fr_status fr_lmstudio_find(const char *folder, const fr_model_name *name, fr_found_files *found) {
    char *repository;
    if (asprintf(&repository, "%s/%s/%s", folder, name->org, name->model) < 0)
        return fr_fail_memory("a path", strlen(folder));
    fr_status status = is_folder(repository) ? fr_repository_find(repository, name->which, found) : FR_OK;
    free(repository);
    return status;
}

static fr_status visit_model(const char *path, const char *own, const char *publisher, const fr_found_told *to) {
    char name[2 * FR_NAME_PART];
    if (!fr_model_name_part(own, strlen(own))) return FR_OK;
    snprintf(name, sizeof name, "%s/%s", publisher, own);
    return fr_repository_list(path, name, "LM Studio", false, to);
}

static fr_status visit_publisher(const char *path, const char *own, const char *above, const fr_found_told *to) {
    (void)above;
    return fr_model_name_part(own, strlen(own)) ? each_folder(path, visit_model, own, to) : FR_OK;
}

fr_status fr_lmstudio_list(const char *folder, const fr_found_told *to) {
    return each_folder(folder, visit_publisher, "", to);
}
