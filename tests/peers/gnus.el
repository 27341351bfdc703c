;; Shows the first message of MBOX in Gnus, and prints the displayed text. Then presses the button of each external body,
;; and prints the displayed text again, with the links in it. Gnus keeps its files in FOLDER.
;; The script `check` in this directory runs this command: emacs --batch -Q -l gnus.el MBOX FOLDER
(let ((mbox (pop command-line-args-left)) (folder (pop command-line-args-left)))
  (setq gnus-home-directory (file-name-as-directory folder)
        gnus-startup-file (expand-file-name "newsrc" folder)
        gnus-select-method '(nnnil "") gnus-auto-select-first nil gnus-verbose 0
        gnus-use-dribble-file nil gnus-save-newsrc-file nil gnus-read-newsrc-file nil)
  (require 'gnus)
  (gnus-no-server)
  (gnus-group-read-ephemeral-group
   "check" `(nndoc "check" (nndoc-address ,mbox) (nndoc-article-type mbox)) t)
  (with-current-buffer gnus-summary-buffer
    (gnus-summary-goto-subject 1)
    (gnus-summary-display-article 1)
    (with-current-buffer gnus-article-buffer
      (princ (format "shown at once: %s\n" (buffer-string)))
      (condition-case trouble
          (pcase-dolist (`(,_ . ,handle) gnus-article-mime-handle-alist)
            (when (equal (mm-handle-media-type handle) "message/external-body")
              (goto-char (point-min))
              (while (not (eq (get-text-property (point) 'gnus-data) handle))
                (forward-char 1))
              (gnus-article-press-button)))
        (error (princ (format "trouble: %S\n" trouble))))
      (princ (format "shown when pressed: %s\n" (buffer-string)))
      (let ((place (point-min)))
        (while (setq place (next-single-property-change place 'shr-url))
          (when (get-text-property place 'shr-url)
            (princ (format "link: %s\n" (get-text-property place 'shr-url)))))))))
