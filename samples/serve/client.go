// Detaches and restores the mails of a directory with embody serve, and compares each byte. Reads a mailbox of Outlook:
//
//	go run client.go http://127.0.0.1:9997 DIRECTORY [MAILBOX.pst]
package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
)

func post(path string, body []byte) []byte {
	request, err := http.NewRequest("POST", os.Args[1]+path, bytes.NewReader(body))
	check(err)
	if token := os.Getenv("EMBODY_TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	check(err)
	if response.StatusCode != 200 {
		log.Fatalf("%s: %s", path, answer) // The detail of a problem says what to do (RFC 9457).
	}
	return answer
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	files, err := filepath.Glob(filepath.Join(os.Args[2], "*"))
	check(err)
	for _, file := range files {
		mail, err := os.ReadFile(file)
		check(err)
		if !bytes.Equal(post("/v1/restore", post("/v1/detach?larger-than=1k", mail)), mail) {
			log.Fatalf("%s was not restored", file)
		}
	}
	fmt.Println(len(files), "mails restored")
	for _, mailbox := range os.Args[3:] {
		content, err := os.ReadFile(mailbox)
		check(err)
		archive, count, name := tar.NewReader(bytes.NewReader(post("/v1/messages", content))), 0, ""
		for header, err := archive.Next(); err == nil; header, err = archive.Next() {
			count, name = count+1, header.Name // An archive without report.json at its end is incomplete.
		}
		fmt.Println(count-1, "messages read, complete:", name == "report.json")
	}
}
